// Package testserver starts throwaway database servers for tests: on free loopback ports, with data in temporary folders,
// stopped at the end. It never touches a server that runs already.
//
// # One server for many tests
//
// Postgres, MySQL, Redis and RedisCluster return the URL of something empty of the test's own: a database, or a prefix of
// keys. The server behind it is the one that BELFRY_TEST_POSTGRES_URL (…_MYSQL_URL, …_REDIS_URL, …_REDIS_CLUSTER_URL) names,
// else one that this process starts when it is first asked for; then its TestMain is Main:
//
//	func TestMain(m *testing.M) { testserver.Main(m) }
//
// `make test` runs `go run ./internal/testserver/with go test ./...`, which starts one server of each kind for the whole
// run and sets the variables.
//
// # A server of the test's own
//
// StartPostgres and the like start a server for one test, with durable settings, that can be killed, frozen, stopped and
// started again on its data and port.
//
// # Binaries
//
// They come from PATH and the folders where Debian keeps them. Missing ones are installed from Debian's packages where the
// process may (root, apt-get), without starting the packages' own services. Else the test is skipped with one line that says
// what is missing; with BELFRY_REQUIRE_SERVICES=1 it fails.
package testserver
