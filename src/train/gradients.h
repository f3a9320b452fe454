#ifndef GRADIENTS_H
#define GRADIENTS_H
/* How gradients.c tells backward.c what flows back along an edge of the graph, from a node to one of its sources. */

#include "build.h"

struct edge {
    context *ctx;               /* where to build */
    tensor  *y, *g;             /* the node and its gradient, F32 */
    tensor  *a, *b;             /* the node's first two sources */
};
/* What g contributes to the gradient of the source; NULL: no rule for these shapes, or the context is full. */
typedef tensor *gradient(const struct edge *e);

/* The rule for source s of y; `constant`: nothing flows; NULL: there is none. */
gradient *gradient_of(const tensor *y, int s);
gradient  constant;

#endif
