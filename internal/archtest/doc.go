// Package archtest states, as tests, which package may import which, and other rules about the shape of the code. A test
// that fails says the rule and its reason.
package archtest
