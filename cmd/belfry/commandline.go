package main

// commandLine is the grammar of the program's arguments.
type commandLine struct {
	Config string `placeholder:"FILE" help:"Configuration file in YAML (BELFRY_CONFIG; ./belfry.yaml if it is there)."`

	Serve       serveCommand       `cmd:"" help:"Run a server."`
	Schedule    scheduleCommand    `cmd:"" help:"Accept a message, to be delivered later."`
	List        listCommand        `cmd:"" help:"List messages."`
	Get         getCommand         `cmd:"" help:"Show a message with its attempts."`
	Cancel      cancelCommand      `cmd:"" help:"Call a message off."`
	Watch       watchCommand       `cmd:"" help:"Print a line for every message that changes."`
	Migrate     migrateCommand     `cmd:"" help:"Change the tables of the store."`
	Import      importCommand      `cmd:"" help:"Bring over what another system holds."`
	Doctor      doctorCommand      `cmd:"" help:"Check settings, store, clock, disk and NATS; exit code 1 when something is wrong."`
	Healthcheck healthcheckCommand `cmd:"" help:"Ask the server on this machine whether it is ready; exit code 1 when it is not."`
	Settings    configCommand      `cmd:"" name:"config" help:"List the settings: their names, values, and where each was set."`
	Version     versionCommand     `cmd:"" help:"Tell the version."`
}
