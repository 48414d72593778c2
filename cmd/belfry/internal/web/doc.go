// Package web is what stands around the program's HTTP handlers: listeners with bounds on everything a client can hold on
// to, request ids, the access log, and the answer to a handler that panicked.
package web
