// SPDX-License-Identifier: Apache-2.0
#include "acc/control/flight_record.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <future>

#include "acc/base/files.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace flight_record_test {

using namespace acc::launcher;
using acc::Descriptor;
using acc::write_all;
using acc::test::TemporaryFolder;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

// Recorded from torch 2.11: an all_reduce that has ended, and one that has not.
constexpr const char* kRecord = R"({
  "comm_lib_version": "", "version": "2.10", "nccl_comm_state": {},
  "entries": [
    {"collective_seq_id": 1, "input_dtypes": ["Float"], "input_sizes": [[4]], "is_p2p": false, "op_id": 1,
     "output_dtypes": ["Float"], "output_sizes": [[4]], "p2p_seq_id": 0, "pg_id": 0,
     "process_group": ["0", "default_pg"], "profiling_name": "gloo:all_reduce", "record_id": 0, "retired": true,
     "state": "scheduled", "thread_id": "139727132732288", "thread_name": "python",
     "time_created_ns": 1795803942018991472, "time_discovered_completed_ns": 0, "timeout_ms": 1800000},
    {"collective_seq_id": 2, "input_dtypes": ["Float"], "input_sizes": [[2, 3]], "is_p2p": false, "op_id": 2,
     "output_dtypes": ["Float"], "output_sizes": [[2, 3]], "p2p_seq_id": 0, "pg_id": 0,
     "process_group": ["0", "default_pg"], "profiling_name": "gloo:all_reduce", "record_id": 1, "retired": false,
     "state": "scheduled", "thread_id": "139727132732288", "thread_name": "python",
     "time_created_ns": 1795803942021218780, "time_discovered_completed_ns": 0, "timeout_ms": 1800000}],
  "pg_config": {"": {"desc": "", "name": "", "ranks": "[0, 1]"}},
  "pg_status": {"0": {"last_completed_collective": "1", "last_enqueued_collective": "2"}}
})";

json entry(int id, const json& fields = json::object()) {
  json result = {{"record_id", id},
                 {"collective_seq_id", id},
                 {"p2p_seq_id", 0},
                 {"is_p2p", false},
                 {"profiling_name", "nccl:broadcast"},
                 {"process_group", {"2", "undefined"}},
                 {"state", "started"},
                 {"retired", false}};
  result.update(fields);
  return result;
}

std::vector<CollectiveCall> calls_of(const std::vector<json>& entries) {
  return collective_calls({{"entries", entries}});
}

// A worker that answers once, with `text`.
class Worker {
 public:
  Worker(const std::string& path, std::string text)
      : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, path.size());
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_.get(), 1) == 0);
    answered_ = std::async(std::launch::async, [this, answer = std::move(text)] {
      const Descriptor connection(::accept(listener_.get(), nullptr, nullptr));
      write_all(connection.get(), answer);
    });
  }

 private:
  Descriptor listener_;
  std::future<void> answered_ = {};
};

}  // namespace

TEST_CASE("flight_record: calls by name, number and tensors, those that have ended and that have not",
          "[control]") {
  const auto calls = collective_calls(json::parse(kRecord));
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].has_ended);
  CHECK(calls[1] ==
        CollectiveCall{.name = "all_reduce", .number = 2, .group = "0", .tensors = "float [2, 3]"});
  CHECK(pending_call(calls) == &calls[1]);
  CHECK(to_string(calls[1]) == "all_reduce 2 (float [2, 3])");
}

TEST_CASE("flight_record: the oldest of all process groups is pending, with its group's description",
          "[control]") {
  const auto calls = calls_of({entry(7), entry(4, {{"process_group", {"3", "mesh_tp"}}}), entry(5)});
  REQUIRE(pending_call(calls) != nullptr);
  CHECK(to_string(*pending_call(calls)) == "broadcast 4 of mesh_tp");
}

TEST_CASE("flight_record: what has ended, or was retired, is not pending", "[control]") {
  CHECK(pending_call(calls_of({entry(1, {{"state", "completed"}}), entry(2, {{"retired", true}})})) ==
        nullptr);
}

TEST_CASE("flight_record: transfers between two ranks have numbers of their own", "[control]") {
  const auto calls =
      calls_of({entry(3, {{"is_p2p", true}, {"p2p_seq_id", 9}, {"profiling_name", "nccl:send 0->1"}})});
  CHECK(to_string(calls.at(0)) == "send 0->1 9");
}

TEST_CASE("flight_record: of many tensors the first are shown", "[control]") {
  const auto calls = calls_of({entry(1, {{"input_dtypes", {"Float", "Half", "Long", "Long", "Long"}},
                                         {"input_sizes", {{4}, {2}, {1}, {1}, {1}}}})});
  CHECK(calls.at(0).tensors == "float [4], half [2], long [1], 2 more");
}

TEST_CASE("flight_record: a record with other fields or types says nothing, and is no error", "[control]") {
  for (const char* text : {"{}", "[]", "1", R"({"entries": 1})", R"({"entries": [1, null, []]})"})
    CHECK(collective_calls(json::parse(text)).empty());
  const auto calls = calls_of({{{"record_id", "x"}, {"profiling_name", 3}, {"input_sizes", "[4]"}}});
  CHECK(calls == std::vector{CollectiveCall{}});
}

namespace {

json call(int number, const char* name, int size, bool ended) {
  return entry(number, {{"profiling_name", std::string("gloo:") + name},
                        {"process_group", {"0", "default_pg"}},
                        {"input_dtypes", {"Float"}},
                        {"input_sizes", {{size}}},
                        {"retired", ended}});
}

}  // namespace

TEST_CASE("flight_record: ranks that send different sizes in one call are named", "[control]") {
  const auto waits = calls_of({call(1, "all_reduce", 4, true), call(2, "all_reduce", 4, false)});
  const auto has_gone_on = calls_of({call(1, "all_reduce", 4, true), call(2, "all_reduce", 2, true)});
  CHECK(differing_calls({{0, waits}, {1, has_gone_on}, {2, waits}}) ==
        "call 2 differs: all_reduce (float [2]) on rank 1; all_reduce (float [4]) on ranks 0, 2");
  CHECK(differing_calls({{0, waits}, {1, waits}}).empty());
}

TEST_CASE("flight_record: ranks that call something else are named", "[control]") {
  CHECK(differing_calls({{0, calls_of({call(2, "all_reduce", 4, false)})},
                         {1, calls_of({call(2, "broadcast", 4, false)})}}) ==
        "call 2 differs: all_reduce (float [4]) on rank 0; broadcast (float [4]) on rank 1");
}

TEST_CASE("flight_record: what may differ, or nobody waits for, is not told", "[control]") {
  const auto differ = [](const char* name, bool ended) {
    return differing_calls(
        {{0, calls_of({call(2, name, 4, ended)})}, {1, calls_of({call(2, name, 2, ended)})}});
  };
  CHECK(differ("all_to_all", false).empty());
  CHECK(differ("gather", false).empty());
  CHECK(differ("all_reduce", true).empty());
  // Calls of another process group, and transfers between two.
  const auto calls_of_group = [](const char* name) {
    return calls_of(
        {entry(2, {{"process_group", {name, "mesh_dp"}}, {"profiling_name", std::string("gloo:") + name}})});
  };
  CHECK(differing_calls({{0, calls_of_group("3")}, {1, calls_of_group("4")}}).empty());
  const auto transfer = [](const char* name) {
    return calls_of({entry(2, {{"is_p2p", true}, {"p2p_seq_id", 2}, {"profiling_name", name}})});
  };
  CHECK(differing_calls({{0, transfer("gloo:send 0->1")}, {1, transfer("gloo:recv 1<-0")}}).empty());
}

TEST_CASE("flight_record: where a rank stands, with its collective", "[control]") {
  const CollectiveCall sum = {.name = "all_reduce", .number = 12, .tensors = "float [4]"};
  CHECK(with_pending("in all_reduce", sum) == "in all_reduce 12 (float [4])");
  CHECK(with_pending("in all_reduce at train.py:4", sum) == "in all_reduce 12 (float [4]) at train.py:4");
  CHECK(with_pending("in backward after step 3", sum) ==
        "in backward after step 3, all_reduce 12 (float [4]) under way");
  CHECK(with_pending("in all_reduce_coalesced", sum) ==
        "in all_reduce_coalesced, all_reduce 12 (float [4]) under way");
}

TEST_CASE("flight_record: names of another program move no cursor", "[control]") {
  const CollectiveCall hostile = {.name = "\x1b[2J", .number = 1, .group = "a\nb"};
  CHECK(to_string(hostile).find('\x1b') == std::string::npos);
}

TEST_CASE("flight_record: workers are asked at their sockets; who does not answer is left out", "[control]") {
  const TemporaryFolder folder;
  const auto socket = [&](int rank) {
    return flight_record_socket((folder.path() / ("page-" + std::to_string(rank))).string());
  };
  const json record = json::parse(kRecord);
  const Worker zero(socket(0), json{{"records", {json::object(), record}}}.dump() + "\n");
  const Worker one(socket(1), "not JSON\n");
  const Worker two(socket(2), "");
  const Worker four(socket(4), R"({"error": 1})"
                               "\n");
  const auto calls = read_flight_records({{0, socket(0)},
                                          {1, socket(1)},
                                          {2, socket(2)},
                                          {3, socket(3)},
                                          {4, socket(4)},
                                          {5, std::string(5000, 'x')}},
                                         std::chrono::steady_clock::now() + 10s);
  REQUIRE(calls.size() == 1);
  CHECK(calls.at(0).at(1).number == 2);
}

TEST_CASE("flight_record: nobody is waited for after the deadline", "[control]") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "socket").string();
  const Descriptor silent(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  REQUIRE(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(silent.get(), 1) == 0);
  CHECK(read_flight_records({{0, path}}, std::chrono::steady_clock::now()).empty());
}

}  // namespace flight_record_test
