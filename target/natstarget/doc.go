// Package natstarget delivers messages by publishing them to NATS.
//
// # The message
//
// The address is the subject. The payload is sent as it is, the message's headers as NATS headers, the content type as
// the header Content-Type when there is one, and the parameter "key" as the header Belfry-Key. Nats-Msg-Id names the
// message (see below).
//
// # The verdict
//
// A message is delivered when the server has it: it is published, and the server has answered a ping that was sent behind
// it. When a JetStream stream listens on the subject, the message is delivered when the stream has acknowledged it. A
// stream that has it already, by an attempt whose outcome was not known, acknowledges it too and stores it once, because
// every attempt carries the same Nats-Msg-Id.
//
// Whether a stream listens is asked of the server and remembered for a few seconds: a stream that has appeared is not
// waited for until then, though it receives the message. One that has vanished is noticed when it does not acknowledge.
// Where JetStream is not to be had, or the connection may not ask, messages are published without.
//
// # The connection
//
// New does not connect, and needs no server: connecting, and connecting again, goes on in the background until Close. A
// delivery waits a moment for a connection and fails without one. Nothing is held back to be sent later: a delivery that
// failed for want of a connection was not sent.
//
// # Nats-Msg-Id
//
// It is made of the message's queue and id and a digest of what is delivered (subject, payload, the instants of its
// acceptance and firing). So it is the same in every attempt, and another for a message that was put again under the
// same id, rescheduled or given another payload: a stream drops none of these as a duplicate. A message may bring its
// own.
package natstarget
