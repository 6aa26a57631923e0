// SPDX-License-Identifier: Apache-2.0
// Tries every operation of the C++ c10d::TCPStore on the store at 127.0.0.1:PORT. Prints failures, and exits
// with 1 if there are any.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

namespace {

using Bytes = std::vector<std::uint8_t>;
using Client = c10::intrusive_ptr<c10d::TCPStore>;

int failures = 0;

void check(bool good, const char* what) {
  if (good) return;
  std::printf("failed: %s\n", what);
  ++failures;
}

Bytes bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

bool is(const Bytes& value, const std::string& text) {
  return value == bytes(text);
}

Client connect(std::uint16_t port, bool as_server) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = as_server;
  options.numWorkers = 1;
  options.timeout = std::chrono::seconds(30);
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

void check_values(c10d::TCPStore& store) {
  store.set("key", bytes("value"));
  check(is(store.get("key"), "value"), "set, get");
  store.append("appended", bytes("12"));
  store.append("appended", bytes("34"));
  check(is(store.get("appended"), "1234"), "append");
  check(store.add("count", 41) == 41 && store.add("count", 1) == 42, "add");
  check(is(store.compareSet("swapped", Bytes(), bytes("1")), "1"), "compareSet of what is missing");
  check(is(store.compareSet("swapped", bytes("2"), bytes("3")), "1"), "compareSet of something else");
  store.multiSet({"one", "two"}, {bytes("x"), bytes("y")});
  check(store.multiGet({"one", "two"}) == std::vector<Bytes>{bytes("x"), bytes("y")}, "multiSet, multiGet");
}

// LibTorch 2.9 does not have this operation.
template <class Store>
void check_list(Store& store) {
  if constexpr (requires { store.listKeys(); }) check(store.listKeys().size() == 5, "listKeys");
}

void check_keys(c10d::TCPStore& store) {
  check(store.check({"key", "count"}) && !store.check({"key", "missing"}), "check");
  const std::int64_t before = store.getNumKeys();
  check(store.deleteKey("swapped") && !store.deleteKey("swapped"), "deleteKey");
  check(store.getNumKeys() == before - 1, "getNumKeys");
  check_list(store);
}

void check_waits(c10d::TCPStore& store) {
  bool timed_out = false;
  try {
    store.wait({"never"}, std::chrono::milliseconds(200));
  } catch (const c10::Error&) {
    timed_out = true;
  }
  check(timed_out, "wait that times out");
  check(is(store.get("key"), "value"), "in step after a wait that timed out");
}

void check_queues(c10d::TCPStore& store) {
  store.queuePush("queue", bytes("1"));
  check(store.queueLen("queue") == 1, "queueLen");
  check(is(store.queuePop("queue", true), "1"), "queuePush, queuePop");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  const Client store = connect(port, false);
  check_values(*store);
  check_keys(*store);
  check_waits(*store);
  check_queues(*store);
  c10d::PrefixStore("prefix", store).set("key", bytes("inner"));
  check(is(store->get("prefix/key"), "inner"), "PrefixStore");
  // Rank 0 would serve the store if the agent did not.
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  ::setenv("MASTER_PORT", argv[1], 1);
  check(is(connect(port, true)->get("key"), "value"), "rank 0 under an agent's store");
  return failures == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 1;
}
