package main

// commandLine is the grammar of the program's arguments.
type commandLine struct {
	Config string `placeholder:"FILE" help:"Configuration file in YAML (BELFRY_CONFIG; ./belfry.yaml if it is there)."`

	Serve    serveCommand   `cmd:"" help:"Run a server."`
	Settings configCommand  `cmd:"" name:"config" help:"List the settings: their names, values, and where each was set."`
	Version  versionCommand `cmd:"" help:"Tell the version."`
}
