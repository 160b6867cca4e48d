// The c10d store for Gloo over a Relay.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "train/collective/key_value.h"
#include "train/collective/relay.h"

namespace c10d {
class Store;
}  // namespace c10d

namespace muster::train {

// Returns a store that rewrites Gloo's addresses: it exposes the ports that this task publishes,
// and replaces those of other tasks by ports of the relay on read. `relay` must outlive the store.
c10::intrusive_ptr<c10d::Store> NewRelayedStore(std::shared_ptr<KeyValue> values, Relay& relay,
                                                int rank);

}  // namespace muster::train
