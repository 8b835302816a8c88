/* wire.h - messages between ranks over a TCP connection.
 *
 * A message is a header of 16 bytes (magic number, type, length of the content, 0; each 4 bytes,
 * little-endian) and its content. If anything else arrives, wire_next() returns WIRE_GARBAGE, and
 * the connection can only be closed. */
#ifndef SNAPMLA_GENERATOR_LOCAL_RANKS_WIRE_H
#define SNAPMLA_GENERATOR_LOCAL_RANKS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    WIRE_HELLO_MOST = 4096, /* bytes of content before the other side has introduced itself */
    WIRE_MOST = 1 << 20,    /* bytes of content after that */
};

typedef enum {
    WIRE_HELLO = 1, /* to rank 0: the sender's rank, size of its group, and facts */
    WIRE_WELCOME,   /* from rank 0: all ranks have arrived */
    WIRE_DATA,      /* numbers of an all-gather */
    WIRE_BEAT,      /* a sign of life, about once a second, with the sender's progress */
    WIRE_FAIL,      /* code and text of the failure that ends the group */
    WIRE_BYE,       /* the sender has ended its work without a failure */
    WIRE_ORDER,     /* to a rank of a split model: what to open (split_order.h) */
    WIRE_CALL,      /* to a rank of a split model: a call to repeat (model/calls.h) */
    WIRE_SUM,       /* numbers that ranks of a split model on the CPU exchange (host_sums.h) */
    WIRE_ANSWER,    /* from a rank of a split model: an answer to a call (model/remote.h) */
    WIRE_REFUSED,   /* from rank 0: why the receiver cannot join; content as of WIRE_FAIL. The group
                       itself has not failed */
    WIRE_TYPES,
} wire_type;

typedef struct {
    wire_type type;
    size_t n;
    const uint8_t *bytes; /* [n], valid until the next call for this connection */
} wire_message;

typedef struct {
    int fd; /* -1 = closed */
    uint8_t *in;
    size_t n, room; /* bytes received, bytes allocated */
    size_t taken;   /* bytes of the message that wire_next() returned last */
    size_t most;    /* longest content that is accepted, in bytes */
    bool no_memory; /* wire_read() could not allocate memory */
} wire;

#define WIRE_CLOSED ((wire){.fd = -1})

/* Takes over the socket @fd. A send that blocks for @send_s seconds will fail. */
wire wire_of(int fd, size_t most, double send_s);
void wire_close(wire *w); /* may be called twice */

/* Sends a whole message. SNAP_E_NET if the other side has closed the connection, or does not read
 * for send_s seconds. */
snap_status wire_send(wire *w, wire_type type, const void *bytes, size_t n,
                      snap_err *err) SNAP_CHECK_RESULT;

/* Reads what has arrived, without waiting. False: the connection is closed, or memory is exhausted
 * and w->no_memory is true. */
bool wire_read(wire *w);

typedef enum { WIRE_NOTHING, WIRE_MESSAGE, WIRE_GARBAGE } wire_result;

/* Takes the next complete message from what was read. */
wire_result wire_next(wire *w, wire_message *out);

/* Write and read numbers in the content of a message, little-endian. */
void wire_put32(uint8_t *to, uint32_t x);
void wire_put64(uint8_t *to, uint64_t x);
uint32_t wire_get32(const uint8_t *from);
uint64_t wire_get64(const uint8_t *from);

#endif
