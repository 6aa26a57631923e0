// SPDX-License-Identifier: Apache-2.0
#include "acc/base/task_exchange.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/errors.hpp"

namespace task_exchange_test {

using acc::exchange_first_task;
using acc::FirstTask;
using acc::test::error_of;

namespace {

/// Hydra's end of PMI_FD: answers each line of a task as Hydra 4.0 does.
class Hydra {
 public:
  explicit Hydra(std::map<std::string, std::string> answers) : answers_(std::move(answers)) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0);
    server_ = std::thread([this] { serve(); });
  }
  ~Hydra() {
    ::close(ends_[0]);
    server_.join();
    ::close(ends_[1]);
  }
  Hydra(const Hydra&) = delete;
  Hydra& operator=(const Hydra&) = delete;

  acc::Environment environment() const { return {{"PMI_FD", std::to_string(ends_[0])}}; }
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  void serve() {
    std::string line;
    for (char c = 0; ::read(ends_[1], &c, 1) == 1;) {
      if (c != '\n') {
        line += c;
        continue;
      }
      asked_.push_back(line);
      // By the whole line, or its first word.
      auto answer = answers_.find(line);
      if (answer == answers_.end()) answer = answers_.find(line.substr(0, line.find(' ')));
      if (answer == answers_.end()) break;
      const std::string text = answer->second + "\n";
      if (::write(ends_[1], text.data(), text.size()) < 0) break;
      line.clear();
    }
    ::shutdown(ends_[1], SHUT_RDWR);
  }

  int ends_[2] = {};
  std::map<std::string, std::string> answers_;
  std::vector<std::string> asked_ = {};
  std::thread server_ = {};
};

const std::map<std::string, std::string> kAnswers = {
    {"cmd=init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
    {"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_17_0"},
    {"cmd=put", "cmd=put_result rc=0 msg=success"},
    {"cmd=barrier_in", "cmd=barrier_out"},
    {"cmd=get", "cmd=get_result rc=0 msg=success value=10.0.0.1"},
    {"cmd=finalize", "cmd=finalize_ack"},
};

}  // namespace

TEST_CASE("task_exchange: rank 0 puts its text, and the others get it, through PMI", "[base]") {
  for (const int rank : {0, 1}) {
    std::vector<std::string> expected = {"cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_my_kvsname"};
    if (rank == 0) expected.emplace_back("cmd=put kvsname=kvs_17_0 key=acc-first-task value=10.0.0.1");
    expected.insert(expected.end(), {"cmd=barrier_in", "cmd=get kvsname=kvs_17_0 key=acc-first-task",
                                     "cmd=get kvsname=kvs_17_0 key=PMI_process_mapping", "cmd=finalize"});
    std::vector<std::string> asked;
    {
      const Hydra hydra(kAnswers);
      const auto first = exchange_first_task(hydra.environment(), rank, "10.0.0.1");
      REQUIRE(first);
      CHECK(first->text == "10.0.0.1");
      CHECK(first->job == "kvs_17_0");
      asked = hydra.asked();
    }
    CHECK(asked == expected);
  }
}

TEST_CASE("task_exchange: a launcher that refuses or hangs up is an error that says so", "[base]") {
  auto answers = kAnswers;
  answers["cmd=get"] = "cmd=get_result rc=-1 msg=key_not_found";
  const std::string hint = " (with --master-addr the processes meet without the help of mpirun)";
  {
    const Hydra hydra(answers);
    CHECK(error_of([&] { exchange_first_task(hydra.environment(), 1, "x"); }) ==
          "PMI_FD: 'cmd=get kvsname=kvs_17_0 key=acc-first-task' was answered 'cmd=get_result rc=-1 "
          "msg=key_not_found'" +
              hint);
  }
  answers.erase("cmd=get_my_kvsname");
  const Hydra hydra(answers);
  CHECK(error_of([&] { exchange_first_task(hydra.environment(), 1, "x"); }) ==
        "PMI_FD: the launcher ended the connection" + hint);
}

TEST_CASE("task_exchange: PMI's mapping tells the number of nodes", "[base]") {
  using Case = std::pair<std::string, std::optional<int>>;
  const auto& [mapping, nodes] = GENERATE(
      Case{"(vector,(0,2,2))", 2}, Case{"(vector,(0,1,1),(1,1,2))", 2}, Case{"(vector,(0,3,1),(3,2,4))", 5},
      Case{"(vector,(0,1,8))", 1}, Case{"(vector)", std::nullopt}, Case{"(vector,(0,2))", std::nullopt},
      Case{"(vector,(0,x,1))", std::nullopt}, Case{"", std::nullopt});
  CAPTURE(mapping);
  auto answers = kAnswers;
  answers["cmd=get kvsname=kvs_17_0 key=PMI_process_mapping"] =
      mapping.empty() ? "cmd=get_result rc=-1 msg=key_not_found" : "cmd=get_result rc=0 value=" + mapping;
  const Hydra hydra(answers);
  CHECK(exchange_first_task(hydra.environment(), 1, "x")->num_nodes == nodes);
}

TEST_CASE("task_exchange: one task alone can ask for the number of nodes", "[base]") {
  auto answers = kAnswers;
  answers["cmd=get kvsname=kvs_17_0 key=PMI_process_mapping"] =
      "cmd=get_result rc=0 value=(vector,(0,1,2),(1,1,1))";
  std::vector<std::string> asked;
  {
    const Hydra hydra(answers);
    CHECK(acc::count_task_nodes(hydra.environment()) == 2);
    asked = hydra.asked();
  }
  CHECK(asked == std::vector<std::string>{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_my_kvsname",
                                          "cmd=get kvsname=kvs_17_0 key=PMI_process_mapping",
                                          "cmd=finalize"});
  answers.erase("cmd=get_my_kvsname");
  const Hydra hydra(answers);
  CHECK_FALSE(acc::count_task_nodes(hydra.environment()));
  CHECK_FALSE(acc::count_task_nodes({}));
}

TEST_CASE("task_exchange: without PMI and PMIx there is nobody to ask", "[base]") {
  CHECK_FALSE(exchange_first_task({}, 0, "x"));
  CHECK_FALSE(exchange_first_task({{"PMI_FD", "none"}}, 0, "x"));
}

}  // namespace task_exchange_test
