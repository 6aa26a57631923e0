// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/store_meeting.hpp"

#include <string>
#include <vector>

#include "support/backend_store.hpp"
#include "support/catch.hpp"

namespace store_meeting_test {

using acc::launcher::StoreMeeting;
using acc::launcher::StoreOutcome;
using acc::test::BackendStore;

TEST_CASE("store_meeting: an error is the last event, also while the store is asked", "[rendezvous]") {
  BackendStore store;
  acc::launcher::StoreClient client(store.loop);
  store.connect(client);
  std::vector<std::string> errors;
  StoreMeeting meeting(store.loop, client,
                       {.on_error = [&](const acc::Error& error) { errors.emplace_back(error.what()); }},
                       [] {});
  bool handled = false;
  client.get("/key", meeting.guard([&](StoreOutcome, const auto&) { handled = true; }));
  meeting.fail(acc::Error({.what = "the first"}));
  meeting.fail(acc::Error({.what = "another"}));
  bool replied = false;  // replies come in the order of the requests
  client.get("/key", [&](StoreOutcome, const auto&) { replied = true; });
  store.until([&] { return replied; });
  CHECK_FALSE(handled);
  CHECK(errors == std::vector<std::string>{"the first"});
}

}  // namespace store_meeting_test
