package httptarget

import (
	"fmt"
	"net/netip"
	"slices"

	"code.dny.dev/ssrf"
)

// blockedError is a connection that the settings do not allow. It names the one to change.
type blockedError struct{ text string }

func (e *blockedError) Error() string { return e.text }

// guard decides which addresses may be reached.
type guard struct {
	allow   []netip.Prefix
	private bool
	ports   []uint16
	public  *ssrf.Guardian // knows what is not public by IANA's registries
}

// newGuard returns the guard of the settings; nil if a proxy decides.
func newGuard(s Settings) *guard {
	if s.Proxy != nil {
		return nil
	}
	return &guard{allow: s.Allow, private: s.AllowPrivate, ports: s.Ports, public: ssrf.New(ssrf.WithAnyPort())}
}

// prefixes parses a list of address ranges.
func prefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(list))
	for i, text := range list {
		parsed[i] = netip.MustParsePrefix(text)
	}
	return parsed
}

var (
	// metadata are addresses at which clouds hand out credentials, or configure the machine.
	metadata = prefixes(
		"169.254.169.254/32",     // most clouds
		"169.254.169.253/32",     // AWS, name server
		"169.254.169.123/32",     // AWS, time
		"169.254.170.2/32",       // AWS, tasks
		"169.254.170.23/32",      // AWS, pods
		"169.254.0.23/32",        // Tencent
		"100.100.100.200/32",     // Alibaba
		"168.63.129.16/32",       // Azure, a public address that is the host's own
		"192.0.0.192/32",         // Oracle
		"fd00:ec2::254/128",      // AWS
		"fd00:ec2::23/128",       // AWS, pods
		"fd00:ec2::253/128",      // AWS, name server
		"fd20:ce::254/128",       // Google
		"fd00:c1::a9fe:a9fe/128", // Oracle
		"fd00:42::42/128",        // Scaleway
		"fe80::a9fe:a9fe/128",    // OpenStack
	)
	// private are what Settings.AllowPrivate admits.
	private = prefixes("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7")
)

// nat64 are addresses that stand for IPv4 addresses, which are their last four bytes.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// check returns nil if the address may be reached. What was allowed by name counts most, then cloud metadata, then
// ranges that were allowed, then what is public.
func (g *guard) check(to netip.AddrPort) *blockedError {
	if len(g.ports) > 0 && !slices.Contains(g.ports, to.Port()) {
		return &blockedError{fmt.Sprintf("port %d is not allowed: see BELFRY_EGRESS_PORTS", to.Port())}
	}
	addr := to.Addr().Unmap().WithZone("")
	within := func(p netip.Prefix) bool { return p.Contains(addr) }
	named := func(p netip.Prefix) bool { return p.IsSingleIP() && within(p) }
	switch {
	case slices.ContainsFunc(g.allow, named):
		return nil
	case slices.ContainsFunc(metadata, within):
	case slices.ContainsFunc(g.allow, within):
		return g.checkTranslated(addr, to.Port())
	case g.private && to.Addr().Zone() == "" && slices.ContainsFunc(private, within):
		return nil
	case g.public.SafeAddr(to.Addr()) == nil:
		return nil
	}
	return &blockedError{fmt.Sprintf("address %v is not allowed: see BELFRY_EGRESS_ALLOW", to.Addr())}
}

// checkTranslated checks the IPv4 address that an allowed one stands for: who allows a network of IPv6 only to reach
// the others through a translator does not allow their private addresses.
func (g *guard) checkTranslated(addr netip.Addr, port uint16) *blockedError {
	if !nat64.Contains(addr) {
		return nil
	}
	bytes := addr.As16()
	return g.check(netip.AddrPortFrom(netip.AddrFrom4([4]byte(bytes[12:])), port))
}
