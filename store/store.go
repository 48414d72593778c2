package store

// Store is a database that keeps messages until they are delivered.
type Store interface {
	Line
	Reader
	Keeper
}
