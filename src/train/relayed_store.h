// The store through which Gloo's pairs find each other, where a relay carries their connections.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "train/collective/key_value.h"
#include "train/collective/relay.h"

namespace c10d {
class Store;
}  // namespace c10d

namespace muster::train {

// Addresses that this task's Gloo publishes are exposed; those of the others are replaced by ports
// of the relay when they are read. `relay` must outlive the store.
c10::intrusive_ptr<c10d::Store> NewRelayedStore(std::shared_ptr<KeyValue> values, Relay& relay,
                                                int rank);

}  // namespace muster::train
