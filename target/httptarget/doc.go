// Package httptarget delivers messages as HTTP requests.
//
// # The request
//
// The address is an absolute http or https URL; its user info becomes Basic authentication. The method is POST unless
// the parameter "method" says otherwise. The body is the payload; Content-Type is the message's, application/json
// without one, and sent even with an empty body. The message's headers go on top of these. Every request carries
// Belfry-Attempt (the attempt's number) and Belfry-Fence (which only grows), by which a receiver can tell a retry from
// a late one, and, when secrets are configured, the three headers of Standard Webhooks 1.0.
//
// # The verdict
//
// The status line decides: 2xx is a delivery, even if the rest of the answer is slow, broken or endless; every other
// status, redirects included, is a failed attempt "HTTP 404". 429 and 503 pass on their Retry-After. One timeout bounds
// it all, from the name lookup to the end of the answer.
//
// A request is sent once in an attempt. The exceptions are those that HTTP calls idempotent (GET and its like, and any
// with the header Idempotency-Key): when the connection that was kept for them turns out to have been closed by the
// server, they are sent again on another.
//
// # The network
//
// Callers choose the URL, so where connections go is checked when they are made, on the address that the name resolved
// to: see Settings.Allow. Proxy variables of the environment are ignored. Answers are the text of strangers: they are
// not decompressed, are read up to a bound, and never find their way into an error; nor does anything of the request
// that may be secret.
package httptarget
