// Package sqlstore is the one implementation of the store contract for SQL databases. A database adds a dialect: its migrations, its
// queries by name, how a claim picks rows, and a DB that runs work in a transaction. What is shared never asks which database it is.
package sqlstore
