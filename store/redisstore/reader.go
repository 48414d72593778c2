package redisstore

import (
	"encoding/binary"
	"math"
	"time"
	"unsafe"
)

// reader reads a record field by field. After something is missing all reads give zero values and failed is set.
type reader struct {
	text   string
	failed bool
}

// take returns the next n bytes.
func (r *reader) take(n int) string {
	if n < 0 || n > len(r.text) {
		r.text, r.failed = "", true
		return ""
	}
	taken := r.text[:n]
	r.text = r.text[n:]
	return taken
}

// bytes is take for what only reads; nothing may write to it.
func (r *reader) bytes(n int) []byte {
	taken := r.take(n)
	if len(taken) < n || n == 0 {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(taken), n)
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// double reads a whole number that is stored as a double.
func (r *reader) double() int64 { return int64(math.Float64frombits(r.uint64())) }

// short reads a text with its length in a byte before it.
func (r *reader) short() string { return r.take(int(r.byte())) }

// uvarint reads a number of variable length.
func (r *reader) uvarint() uint64 {
	var n uint64
	for shift := uint(0); shift < 64; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.failed = true
	return 0
}

// varint reads a signed number of variable length.
func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// string reads a text with its length before it.
func (r *reader) string() string {
	n := r.uvarint()
	if n > uint64(len(r.text)) {
		r.text, r.failed = "", true
		return ""
	}
	return r.take(int(n))
}

// count reads how many elements follow, each of at least one byte; -1: there is no list at all.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.text))+1 {
		r.failed = true
		return -1
	}
	return int(n) - 1
}

// optional reads bytes that may be nil.
func (r *reader) optional() []byte {
	n := r.count()
	if n < 0 {
		return nil
	}
	return append(make([]byte, 0, n), r.take(n)...)
}

// texts reads a map that may be nil.
func (r *reader) texts() map[string]string {
	n := r.count()
	if n < 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		key := r.string()
		m[key] = r.string()
	}
	return m
}

func (r *reader) duration() time.Duration { return time.Duration(r.varint()) }

func (r *reader) float() float64 { return math.Float64frombits(r.uint64()) }

func (r *reader) rest() string { return r.take(len(r.text)) }
