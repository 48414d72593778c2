// Package config finds out what a program's settings are and where each was set.
//
// A setting is a field of a kong command with a tag `key`. It has a flag, the names of environment variables and a key in
// the file; what is not told by a tag follows from the flag's name. Sources are asked in this order:
//
//	a flag, the environment, the file .env, the configuration file, the default
//
// Where a setting has several variables, the first name that is set counts, in the environment or in .env, before the
// next one is looked for. A variable that is set to nothing counts as not set.
//
// The tags of a setting:
//
//	key      the key in the file, with dots for nesting; "-": none
//	var      the environment variables, separated by commas, the first one preferred; without the tag BELFRY_ and the
//	         flag's name in capitals; "-": none
//	noflag   it cannot be given on the command line, which every process of the machine can read
//	unset    what counts when nothing is set and the default depends on something else, in words
package config
