// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/rendezvous_state.hpp"

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/formats/pickle_writer.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace rendezvous_state_test {

namespace {

using acc::PickleWriter;
using acc::launcher::read_rendezvous_state;
using acc::launcher::RendezvousNode;
using acc::launcher::RendezvousState;
using acc::launcher::to_pickle;
using acc::launcher::WallTime;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_days;

constexpr const char* kGolden[] = {"one_waiting_t24", "one_waiting_t25", "one_waiting_t15",
                                   "two_complete_v11", "complete_plus_redundant_v11"};

// States that real torchrun agents wrote.
std::string golden(const std::string& name) {
  std::ostringstream bytes;
  bytes << std::ifstream(ACC_TEST_DATA "/rendezvous/" + name + ".pkl", std::ios::binary).rdbuf();
  return bytes.str();
}

WallTime some_time(int second) {
  using namespace std::chrono;
  return sys_days(year(2026) / 11 / 21) + hours(7) + minutes(46) + seconds(second) + microseconds(941812);
}

RendezvousState some_state(int nodes, std::optional<bool> zone) {
  RendezvousState state;
  state.round = 300;
  state.closed = true;
  if (zone) state.deadline = some_time(1);
  state.times_have_zone = zone;
  for (int i = 0; i < nodes; ++i) {
    const RendezvousNode node = {"node-" + std::string(static_cast<std::size_t>(i % 300), 'x'), 1000 * i, i};
    if (i % 4 == 0) state.wait_list.insert(node);
    if (i % 4 == 1) state.redundancy_list.insert(node);
    if (i % 4 > 1) state.participants[node] = i;
    if (zone) state.last_heartbeats[node] = some_time(i % 60);
  }
  return state;
}

std::string error_of(const std::string& pickle) {
  return acc::test::error_of([&] { read_rendezvous_state(pickle); });
}

}  // namespace

TEST_CASE("rendezvous_state: reads what torch 2.11 wrote", "[rendezvous]") {
  const RendezvousState state = read_rendezvous_state(golden("two_complete_v11"));
  CHECK(state.round == 0);
  CHECK(state.complete);
  CHECK_FALSE(state.closed);
  CHECK_FALSE(state.deadline.has_value());
  const RendezvousNode first = {"127.0.0.1", 8521, 0};
  const RendezvousNode second = {"127.0.0.2", 8522, 0};
  CHECK(state.participants == std::map<RendezvousNode, std::int64_t>{{first, 0}, {second, 1}});
  CHECK(state.wait_list.empty());
  CHECK(state.last_heartbeats.at(first) == some_time(38));
  CHECK(state.times_have_zone == true);
}

TEST_CASE("rendezvous_state: reads the times of every version, and writes their kind", "[rendezvous]") {
  const auto [name, zone] = GENERATE(table<std::string, bool>(
      {{"one_waiting_t24", false}, {"one_waiting_t25", false}, {"one_waiting_t15", true}}));
  const RendezvousState state = read_rendezvous_state(golden(name));
  CHECK(state.participants.size() == 1);
  CHECK(state.last_heartbeats.size() == 1);
  CHECK(state.times_have_zone == zone);
  CHECK((to_pickle(state).find("timezone") != std::string::npos) == zone);
}

TEST_CASE("rendezvous_state: reads what it writes", "[rendezvous]") {
  for (const char* name : kGolden) {
    const RendezvousState state = read_rendezvous_state(golden(name));
    CHECK(read_rendezvous_state(to_pickle(state)) == state);
  }
  const int nodes = GENERATE(0, 1, 2, 7, 400);
  const RendezvousState state = some_state(nodes, GENERATE(true, false));
  CHECK(read_rendezvous_state(to_pickle(state)) == state);
  CHECK(read_rendezvous_state(to_pickle(RendezvousState())) == RendezvousState());
}

TEST_CASE("rendezvous_state: a thousand nodes take some 100 KB", "[rendezvous]") {
  RendezvousState state;
  for (int i = 0; i < 1000; ++i) {
    const RendezvousNode node = {"10.0.0." + std::to_string(i), 100'000 + i, 0};
    state.participants[node] = i;
    state.last_heartbeats[node] = some_time(1);
  }
  CHECK(to_pickle(state).size() < 110'000);
}

TEST_CASE("rendezvous_state: nodes are ordered like Python's strings", "[rendezvous]") {
  CHECK(RendezvousNode{"node10", 1, 0} < RendezvousNode{"node2", 1, 0});
  CHECK(RendezvousNode{"Z", 1, 0} < RendezvousNode{"a", 1, 0});
  CHECK(RendezvousNode{"z", 1, 0} < RendezvousNode{"\xc3\xa9", 1, 0});
  CHECK(RendezvousNode{"a", 9, 0} < RendezvousNode{"a", 10, 0});
  CHECK(RendezvousNode{"a", 9, 0} < RendezvousNode{"a", 9, 1});
  CHECK(to_string(RendezvousNode{"a", 9, 1}) == "a_9_1");
}

TEST_CASE("rendezvous_state: refuses what torchrun never wrote", "[rendezvous]") {
  const std::string pickle = golden("two_complete_v11");
  const auto error_with = [&](const std::string& part, const std::string& replacement) {
    std::string changed = pickle;
    changed.replace(changed.find(part), part.size(), replacement);
    return error_of(changed);
  };
  const std::string start = "the rendezvous state of this job cannot be read: ";
  const std::string end = " (a torchrun other than those of torch 2.4 to 2.15 may take part)";
  const std::string module = "torch.distributed.elastic.rendezvous.dynamic_rendezvous.";
  CHECK(error_with("wait_list", "wait_lost") ==
        start + "unknown member 'wait_lost' of " + module + "_RendezvousState" + end);
  CHECK(error_with("local_id", "local_ip") ==
        start + "unknown member 'local_ip' of " + module + "_NodeDesc" + end);
  CHECK(error_with("_NodeDesc", "_NodeDisc") ==
        start + "the pickle has an unknown class, " + module + "_NodeDisc" + end);
  CHECK(error_with("timezone", "timebone") ==
        start + "the pickle has an unknown class, datetime.timebone" + end);
  CHECK(error_with("\x07\xea\x0b\x15", "\x07\xea\x0d\x15") == start + "a time is out of range" + end);
  CHECK(error_of("N.") == start + "expected " + module + "_RendezvousState" + end);
  CHECK(error_of(std::string(3'000'000, 'N')) == start + "it has more than 2 MiB" + end);

  PickleWriter short_of_all;
  short_of_all.class_name(module.substr(0, module.size() - 1), "_RendezvousState");
  short_of_all.empty_tuple();
  short_of_all.new_object();
  CHECK(error_of(short_of_all.finish()) == start + module + "_RendezvousState without 'round'" + end);
}

TEST_CASE("rendezvous_state: times of both kinds are refused", "[rendezvous]") {
  std::string pickle = golden("two_complete_v11");
  const std::string with_zone = "h\x27\x86\x94R\x94u";  // the last time: its bytes and the zone in a tuple
  pickle.replace(pickle.find(with_zone), with_zone.size(), "\x85\x94R\x94u");
  CHECK(error_of(pickle).find("times with and without a zone") != std::string::npos);
}

TEST_CASE("rendezvous_state: damaged pickles are an error or another state, never worse", "[rendezvous]") {
  std::mt19937 random(4711);
  int read = 0;
  for (const char* name : kGolden) {
    const std::string pickle = golden(name);
    for (std::size_t size = 0; size < pickle.size(); ++size) {
      CHECK_THROWS_AS(read_rendezvous_state(pickle.substr(0, size)), acc::Error);
    }
    for (int i = 0; i < 4000; ++i) {
      std::string damaged = pickle;
      for (auto n = random() % 3 + 1; n > 0; --n) {
        auto& byte = damaged[random() % damaged.size()];
        byte = static_cast<char>(random() % 2 == 0 ? static_cast<unsigned char>(byte) ^ (1U << random() % 8)
                                                   : random());
      }
      try {
        const RendezvousState state = read_rendezvous_state(damaged);
        CHECK(read_rendezvous_state(to_pickle(state)) == state);
        ++read;
      } catch (const acc::Error&) {  // NOLINT(bugprone-empty-catch): the other way it may end
      }
    }
  }
  CHECK(read > 0);
}

}  // namespace rendezvous_state_test
