package httptarget

import (
	"net/netip"
	"strings"
	"testing"
)

// notPublic are addresses that may never be reached by default, with what they are.
var notPublic = map[string]string{
	"0.0.0.0":              "this host",
	"0.1.2.3":              "this network",
	"10.0.0.1":             "private",
	"10.255.255.255":       "private",
	"100.64.0.1":           "shared by carriers",
	"100.127.255.254":      "shared by carriers",
	"100.100.100.200":      "metadata of Alibaba",
	"127.0.0.1":            "loopback",
	"127.1.2.3":            "loopback",
	"168.63.129.16":        "Azure's host",
	"169.254.0.1":          "link-local",
	"169.254.169.254":      "metadata",
	"169.254.170.2":        "metadata of AWS tasks",
	"172.16.0.1":           "private",
	"172.31.255.255":       "private",
	"192.0.0.1":            "protocol assignments",
	"192.0.0.192":          "metadata of Oracle",
	"192.0.2.1":            "documentation",
	"192.88.99.1":          "relays of 6to4",
	"192.168.0.1":          "private",
	"198.18.0.1":           "benchmarks",
	"198.19.255.255":       "benchmarks",
	"198.51.100.1":         "documentation",
	"203.0.113.1":          "documentation",
	"224.0.0.1":            "multicast",
	"239.255.255.255":      "multicast",
	"240.0.0.1":            "reserved",
	"255.255.255.255":      "broadcast",
	"::":                   "unspecified",
	"::1":                  "loopback",
	"::7f00:1":             "IPv4-compatible",
	"::a00:1":              "IPv4-compatible",
	"::ffff:127.0.0.1":     "IPv4-mapped loopback",
	"::ffff:10.0.0.1":      "IPv4-mapped private",
	"::ffff:8.8.8.8":       "IPv4-mapped",
	"::ffff:0:7f00:1":      "IPv4-translated",
	"64:ff9b::7f00:1":      "NAT64 of loopback",
	"64:ff9b::808:808":     "NAT64",
	"64:ff9b:1::a00:1":     "local NAT64",
	"100::1":               "discard",
	"2001::1":              "Teredo",
	"2001:0:4136:e378::1":  "Teredo",
	"2001:10::1":           "ORCHID",
	"2001:20::1":           "ORCHID",
	"2001:db8::1":          "documentation",
	"2002:7f00:1::":        "6to4 of loopback",
	"2002:808:808::1":      "6to4",
	"3fff::1":              "documentation",
	"5f00::1":              "segment routing",
	"fc00::1":              "unique local",
	"fd00:ec2::254":        "metadata of AWS",
	"fd20:ce::254":         "metadata of Google",
	"fd12:3456:789a::1":    "unique local",
	"fe80::1":              "link-local",
	"fe80::1%eth0":         "link-local with a zone",
	"fec0::1":              "site-local",
	"ff02::1":              "multicast",
	"ff0e::1":              "multicast",
	"2606:4700::1111%eth0": "with a zone",
}

// public are addresses that may be reached.
var public = []string{"1.1.1.1", "8.8.8.8", "11.0.0.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.167.255.255",
	"198.17.0.1", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2400:cb00::1"}

// at returns the address with a port.
func at(addr string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(addr), 443) }

func TestOnlyPublicAddressesAreReachedByDefault(t *testing.T) {
	t.Parallel()
	g := newGuard(Settings{})
	for addr, what := range notPublic {
		err := g.check(at(addr))
		if err == nil {
			t.Errorf("%s (%s) is admitted", addr, what)
		} else if want := "address " + addr + " is not allowed: see BELFRY_EGRESS_ALLOW"; err.Error() != want {
			t.Errorf("%s: the error is %q, want %q", addr, err, want)
		}
	}
	for _, addr := range public {
		if err := g.check(at(addr)); err != nil {
			t.Errorf("%s is public: %v", addr, err)
		}
	}
}

func TestAllowedRangesAreReached(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		allow     []string
		admitted  []string
		forbidden []string
	}{
		{"a range admits what is in it", []string{"10.1.0.0/16"}, []string{"10.1.2.3", "::ffff:10.1.2.3", "8.8.8.8"}, []string{"10.2.0.1", "127.0.0.1"}},
		{"a range does not admit metadata", []string{"169.254.0.0/16", "100.64.0.0/10", "fd00::/8"},
			[]string{"169.254.1.1", "100.64.0.1", "fd00::1"}, []string{"169.254.169.254", "100.100.100.200", "fd00:ec2::254"}},
		{"all of IPv4 does not admit metadata", []string{"0.0.0.0/0"}, []string{"10.0.0.1", "127.0.0.1", "192.168.1.1"},
			[]string{"169.254.169.254", "::ffff:169.254.169.254", "168.63.129.16", "::1"}},
		{"metadata is admitted by name", []string{"169.254.169.254/32", "fd00:ec2::254/128"}, []string{"169.254.169.254", "fd00:ec2::254"}, []string{"169.254.170.2"}},
		{"a zone does not matter to what is allowed", []string{"fe80::/10"}, []string{"fe80::1%eth0", "fe80::1"}, []string{"fe80::a9fe:a9fe"}},
		{"NAT64 admits what it translates to if that is admitted", []string{"64:ff9b::/96"}, []string{"64:ff9b::808:808"},
			[]string{"64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			compare(t, newGuard(Settings{Allow: prefixes(tt.allow...)}), tt.admitted, tt.forbidden)
		})
	}
}

func compare(t *testing.T, g *guard, admitted, forbidden []string) {
	t.Helper()
	for _, addr := range admitted {
		if err := g.check(at(addr)); err != nil {
			t.Errorf("%s must be admitted: %v", addr, err)
		}
	}
	for _, addr := range forbidden {
		if g.check(at(addr)) == nil {
			t.Errorf("%s must not be admitted", addr)
		}
	}
}

func TestPrivateAddressesAreReachedInDevelopmentButLinkLocalOnesAndMetadataAreNot(t *testing.T) {
	t.Parallel()
	compare(t, newGuard(Settings{AllowPrivate: true}),
		[]string{"127.0.0.1", "::1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "::ffff:127.0.0.1", "8.8.8.8"},
		[]string{"169.254.1.1", "169.254.169.254", "fe80::1", "fe80::1%lo", "fd00:ec2::254", "100.100.100.200", "0.0.0.0", "224.0.0.1", "192.0.2.1", "64:ff9b::7f00:1"})
}

func TestPortsAreRestrictedOnlyWhenConfigured(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddr("8.8.8.8")
	if err := newGuard(Settings{}).check(netip.AddrPortFrom(addr, 25)); err != nil {
		t.Errorf("without a setting: %v", err)
	}
	g := newGuard(Settings{Ports: []uint16{80, 443}, Allow: prefixes("10.0.0.0/8")})
	for to, want := range map[string]string{
		"8.8.8.8:443":  "",
		"8.8.8.8:25":   "port 25 is not allowed: see BELFRY_EGRESS_PORTS",
		"10.0.0.1:80":  "",
		"10.0.0.1:22":  "port 22 is not allowed: see BELFRY_EGRESS_PORTS",
		"127.0.0.1:80": "address 127.0.0.1 is not allowed: see BELFRY_EGRESS_ALLOW",
	} {
		got := ""
		if err := g.check(netip.MustParseAddrPort(to)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
	}
}

func TestWhatIsNoAddressIsNotReached(t *testing.T) {
	t.Parallel()
	g := newGuard(Settings{Allow: prefixes("0.0.0.0/0", "::/0")})
	for _, address := range []string{"", "/run/docker.sock", "localhost:80", "1.2.3.4", "1.2.3.4:x"} {
		if err := g.admit(address); err == nil || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func FuzzGuard(f *testing.F) {
	for addr := range notPublic {
		f.Add(netip.MustParseAddr(addr).AsSlice())
	}
	g := newGuard(Settings{})
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		if g.check(netip.AddrPortFrom(addr, 80)) != nil {
			return
		}
		if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.Is4In6() {
			t.Errorf("%v is admitted", addr)
		}
	})
}
