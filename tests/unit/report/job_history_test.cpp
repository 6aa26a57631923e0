// SPDX-License-Identifier: Apache-2.0
#include "acc/report/job_history.hpp"

#include <array>

#include "support/catch.hpp"
#include "support/event_log.hpp"

namespace job_history_test {

using namespace acc;
using namespace acc::launcher;
using test::EventLogText;
using test::history_of;

namespace {

const std::string kCause =
    R"("restart":1,"cause":{"rank":3,"host":"node1","attempt":0,"exit_code":null,"signal":"SIGKILL",)"
    R"("out_of_memory":true,"message":null,"last_words":"lost"})";
const std::string kTwoStarts = "The logs have 2 starts of this run; this is the last one.";
const std::string kOneNode = R"("nodes":1,"world_size":1)";
const std::string kTwoNodes = R"("nodes":2,"world_size":2)";
const std::string kStopped = R"("exit_code":143,"stop_signal":"SIGTERM")";

}  // namespace

TEST_CASE("job_history: logs of several nodes are one job, whose failure is told once", "[report]") {
  const auto node = [](const std::string& host, int rank) {
    EventLogText log(host, rank);
    log.add(100, "job_started", 0,
            R"("workers":2,"command":["train"],"settings":{"cpu":{"value":true,"origin":"--cpu"}})");
    log.add(101, "attempt_started", 0, R"("nodes":2,"world_size":4)");
    log.progress(110, 0, rank * 2, 5, 1);
    log.add(120 + rank, "worker_finished").add(122, "restarting", 0, kCause);
    log.add(130, "attempt_started", 1, R"("nodes":2,"world_size":4)");
    log.add(140, "worker_finished", 1).add(141, "finished", 1, R"("exit_code":0,"restarts":1)");
    return log;
  };
  const JobHistory history = history_of(node("node0", 0), node("node1", 1));
  CHECK(history.run_id == "job7");
  CHECK(history.time.length() == 41);
  CHECK(history.hosts == std::set<std::string>{"node0", "node1"});
  CHECK(history.exit_code == 0);
  CHECK(history.restarts == 1);
  REQUIRE(history.attempts.size() == 2);
  CHECK(history.attempts[0].world_size == 4);
  CHECK(history.attempts[0].time.length() == 20);
  CHECK(history.attempts[0].problem == "rank 3 failed with SIGKILL, out of memory");
  CHECK(history.attempts[0].ranks.size() == 2);
  REQUIRE(history.failures.size() == 1);
  CHECK(history.failures[0].stderr_tail == "lost");
  REQUIRE(history.moments.size() == 1);
  CHECK(history.moments[0].text == "restart 1: rank 3 failed with SIGKILL, out of memory");
  REQUIRE(history.settings.size() == 1);
  CHECK(history.settings[0].origin == "--cpu");
  CHECK(history.notes.empty());
}

TEST_CASE("job_history: where the newest state in memory is, or why it is nowhere", "[report]") {
  EventLogText log("node0");
  log.add(100, "attempt_started");
  log.add(110, "state_flushed", 0, R"("folder":"/runs/checkpoint-9","damaged":[],"problem":null)");
  log.add(120, "state_flushed", 0, R"("folder":"/runs/checkpoint-12","damaged":[],"problem":"no space")");
  log.add(121, "finished", 0, R"("exit_code":3)");
  const JobHistory history = history_of(log);
  REQUIRE(history.moments.size() == 2);
  CHECK(history.moments[0].kind == Moment::Kind::state);
  CHECK(history.moments[0].text == "the newest state in memory is on the disk: /runs/checkpoint-9");
  CHECK(history.moments[1].kind == Moment::Kind::warning);
  CHECK(history.moments[1].text == "the newest state in memory could not be put on the disk: no space");
}

TEST_CASE("job_history: the clock of another node is corrected, and the correction is told", "[report]") {
  EventLogText first("node0");
  first.add(100, "attempt_started", 0, kTwoNodes)
      .progress(110, 0, 0, 5, 1)
      .add(120, "finished", 0, R"("exit_code":0)");
  EventLogText late("node1", 1);
  late.add(400, "attempt_started", 0, kTwoNodes)
      .progress(410, 0, 1, 5, 1)
      .add(420, "finished", 0, R"("exit_code":0)");
  const JobHistory history = history_of(first, late);
  CHECK(history.time.length() == 20);
  CHECK(history.attempts.at(0).ranks.at(1).at(0).time == 110);
  CHECK(history.attempts.at(0).ranks.at(1).at(0).step_ended == 109);
  CHECK(history.notes ==
        std::vector<std::string>{
            "The clock of node1 is 300.0 s ahead of that of node0; its times are corrected."});
}

TEST_CASE("job_history: workers that need their time to end are no clock that is ahead", "[report]") {
  const auto node = [](int rank, double stop) {
    EventLogText log(fmt::format("node{}", rank), rank);
    log.add(100, "attempt_started", 0, R"("nodes":2,"world_size":2)").progress(110, 0, rank, 5, 1);
    log.add(120 + stop, "restarting", 0, kCause);
    log.add(127, "attempt_started", 1, R"("nodes":2,"world_size":2)").progress(137, 1, rank, 5, 1);
    return log.add(140 + stop, "finished", 1, R"("exit_code":1)");
  };
  const JobHistory history = history_of(node(0, 0), node(1, 6));
  CHECK(history.notes.empty());
  CHECK(history.time.length() == 46);
}

TEST_CASE("job_history: a node that joins later has no clock that is ahead", "[report]") {
  const auto two = R"("nodes":2,"world_size":2)";
  EventLogText first("node0");
  first.add(100, "attempt_started")
      .progress(160, 0, 0, 5, 1)
      .add(700, "group_changed", 0, R"("text":"joins")");
  first.add(702, "attempt_started", 0, two).add(750, "group_changed", 0, R"("text":"lost")");
  first.add(751, "attempt_started").add(800, "group_changed", 0, R"("text":"joins")");
  first.add(802, "attempt_started", 0, two).add(900, "finished");
  EventLogText late("node1", 1);
  late.add(690, "job_started").add(702, "attempt_started", 0, two).add(750, "failed");
  EventLogText later("node2", 1);
  later.add(790, "job_started").add(802, "attempt_started", 0, two).add(900, "finished");
  const JobHistory history = history_of(first, late, later);
  CHECK(history.notes.empty());
  CHECK(history.attempts.size() == 4);
}

TEST_CASE("job_history: nodes with as many rounds, of which they share one, have one clock", "[report]") {
  const auto two = R"("nodes":2,"world_size":2)";
  EventLogText first("node0");
  first.add(100, "attempt_started", 0, two).add(121, "attempt_started", 0, two).add(200, "finished");
  EventLogText other("node1", 1);
  other.add(121, "attempt_started", 0, two).add(163, "attempt_started", 0, two).add(200, "finished");
  CHECK(history_of(first, other).notes.empty());
}

TEST_CASE("job_history: of several runs, and of several starts of one, the last is shown", "[report]") {
  const auto run = [](double time, const std::string& id) {
    return EventLogText("node0", 0, id)
        .add(time, "job_started")
        .add(time + 1, "attempt_started")
        .add(time + 9, "finished", 0, R"("exit_code":3)");
  };
  const JobHistory last = history_of(run(100, "a"), run(50, "b"));
  CHECK(last.run_id == "a");
  CHECK(last.notes ==
        std::vector<std::string>{"The logs have 2 runs; this is a (--run-id chooses another)."});
  const JobHistory again = history_of(run(100, "none"), run(50, "none"));
  CHECK(again.time.length() == 9);
  CHECK(again.attempts.size() == 1);
  CHECK(again.notes == std::vector<std::string>{kTwoStarts});

  EventLines lines;
  add_event_lines(lines, run(5, "a").text(), "log");
  CHECK(job_history(lines, "a").run_id == "a");
  CHECK_THROWS_WITH(job_history(lines, "c"), Catch::Contains("the logs have no run 'c'"));
}

TEST_CASE("job_history: a node that comes back to a job that goes on begins no other one", "[report]") {
  EventLogText log("node0");
  log.add(100, "job_started").add(101, "attempt_started").progress(160, 0, 0, 60, 0).add(200, "finished");
  EventLogText other("node1", 1);
  other.add(100, "job_started").add(101, "attempt_started").add(150, "failed").add(155, "job_started");
  const JobHistory history = history_of(log, other);
  CHECK(history.time.length() == 100);
  CHECK(history.notes.empty());
}

TEST_CASE("job_history: several starts on several hosts, whose ranks are known only once they have met",
          "[report]") {
  const auto node = [](const std::string& host, int rank) {
    EventLogText before(host);
    before.add(100, "job_started");
    EventLogText first(host, rank);
    first.add(101, "attempt_started", 0, R"("nodes":2,"world_size":2)")
        .add(110 + rank, "finished", 0, R"("exit_code":3)");
    EventLogText between(host);
    between.add(500, "job_started");
    EventLogText last(host, rank);
    last.add(501, "attempt_started", 0, R"("nodes":2,"world_size":2)")
        .add(520, "finished", 0, R"("exit_code":0)");
    return std::array{before, first, between, last};
  };
  const auto [a, b, c, d] = node("node0", 0);
  const auto [e, f, g, h] = node("node1", 1);
  const JobHistory history = history_of(a, b, c, d, e, f, g, h);
  CHECK(history.exit_code == 0);
  CHECK(history.time.length() == 20);
  CHECK(history.notes == std::vector<std::string>{kTwoStarts});
}

TEST_CASE("job_history: after all agents were killed, a start is another one", "[report]") {
  EventLogText log;
  log.add(100, "job_started").add(101, "attempt_started").progress(160, 0, 0, 5, 0);
  log.add(500, "job_started").add(501, "attempt_started").add(520, "finished", 0, R"("exit_code":0)");
  CHECK(history_of(log).time.length() == 20);
  CHECK(history_of(log).notes == std::vector<std::string>{kTwoStarts});
  const auto node = [](int rank) {
    EventLogText killed(fmt::format("node{}", rank), rank);
    killed.add(100, "job_started").add(101, "attempt_started", 0, R"("nodes":2,"world_size":2)");
    killed.progress(160, 0, rank, 5, 0).add(500 + rank, "job_started").add(502, "waiting_for_nodes");
    return killed.add(503, "attempt_started", 0, R"("nodes":2,"world_size":2)");
  };
  CHECK(history_of(node(0), node(1)).time.length() == 3);
}

TEST_CASE("job_history: nodes that each start again have two starts, also where one ends later", "[report]") {
  const auto node = [](int rank) {
    const std::string two = R"("nodes":2,"world_size":2)";
    EventLogText log(fmt::format("node{}", rank), rank);
    log.add(100, "job_started").add(101, "attempt_started", 0, two).progress(160, 0, rank, 5, 0);
    log.add(199 + 3 * rank, "worker_finished").add(200 + 3 * rank, "finished", 0, R"("exit_code":3)");
    log.add(201 + 3 * rank, "job_started").add(210, "attempt_started", 0, two);
    return log.add(300, "finished", 0, R"("exit_code":0)");
  };
  const JobHistory history = history_of(node(0), node(1));
  CHECK(history.notes == std::vector<std::string>{kTwoStarts});
  CHECK(history.exit_code == 0);
  CHECK(history.time.begin == 201);
  CHECK(history.attempts.size() == 1);
}

TEST_CASE("job_history: a host that was killed and says nothing more does not go on", "[report]") {
  const auto killed = [](int rank, const std::string& nodes) {
    EventLogText log(fmt::format("node{}", rank), rank);
    log.add(100, "job_started").add(101, "attempt_started", 0, nodes);
    return log.progress(160, 0, rank, 5, 0);
  };
  const auto later = [](const std::string& host, int rank, const std::string& nodes) {
    EventLogText log(host, rank);
    log.add(500, "job_started").add(501, "attempt_started", 0, nodes);
    return log.add(520, "finished", 0, R"("exit_code":0)");
  };
  const std::string one = R"("nodes":1,"world_size":1)";
  CHECK(history_of(killed(0, one), later("node9", 0, one)).hosts == std::set<std::string>{"node9"});
  const std::string two = R"("nodes":2,"world_size":2)";
  const JobHistory again =
      history_of(killed(0, two), killed(1, two), later("node0", 0, two), later("node2", 1, two));
  CHECK(again.hosts == std::set<std::string>{"node0", "node2"});
  CHECK(again.time.length() == 20);
  // Nor does one of which no more than a warning is known.
  EventLogText warned("node3", 2);
  warned.add(102, "warning", 0, R"("text":"slow disk")");
  CHECK(history_of(killed(0, one), warned, later("node0", 0, one)).time.length() == 20);
}

TEST_CASE("job_history: a start on another host is another one if it has the part of one that has ended",
          "[report]") {
  const auto node = [](double time, const std::string& host, int rank) {
    return EventLogText(host, rank)
        .add(time, "job_started")
        .add(time + 1, "attempt_started", 0, R"("nodes":2,"world_size":2)")
        .add(time + 20, "finished", 0, R"("exit_code":0)");
  };
  const JobHistory other =
      history_of(node(100, "node0", 0), node(100, "node1", 1), node(500, "node2", 0), node(500, "node3", 1));
  CHECK(other.hosts == std::set<std::string>{"node2", "node3"});
  CHECK(other.notes == std::vector<std::string>{kTwoStarts});
  // The clock of this one is ahead.
  CHECK(history_of(node(100, "node0", 0), node(500, "node1", 1)).hosts.size() == 2);
}

TEST_CASE("job_history: an agent that was killed comes back to a job that goes on", "[report]") {
  const auto two = R"("nodes":2,"world_size":2)";
  EventLogText log("node0");
  log.add(100, "job_started")
      .add(101, "attempt_started", 0, two)
      .add(150, "group_changed", 0, R"("text":"lost")");
  log.add(151, "attempt_started").add(170, "group_changed", 0, R"("text":"joins")");
  log.add(171, "attempt_started", 0, two).add(200, "finished");
  EventLogText other("node1", 1);
  other.add(100, "job_started").add(101, "attempt_started", 0, two).add(169, "job_started");
  other.add(171, "attempt_started", 0, two).add(200, "finished");
  CHECK(history_of(log, other).time.length() == 100);
  // Also in its log alone, if the job has restarted.
  EventLogText alone("node1", 1);
  alone.add(100, "job_started").add(101, "attempt_started", 0, two).add(169, "job_started");
  alone.add(171, "attempt_started", 1, two).add(200, "finished", 1);
  CHECK(history_of(alone).time.length() == 100);
  CHECK(history_of(alone).notes.empty());
  // And a later start is another one, although it never said its end.
  log.add(500, "job_started").add(501, "attempt_started").add(510, "finished");
  CHECK(history_of(log, other).time.length() == 10);

  // The same with two agents on one host.
  EventLogText same("node0", 1);
  same.add(100, "job_started").add(101, "attempt_started", 0, two).add(169, "job_started");
  same.add(171, "attempt_started", 0, two).add(200, "finished");
  EventLogText first("node0");
  first.add(100, "job_started").add(101, "attempt_started", 0, two).progress(168, 0, 0, 5, 0);
  first.add(170, "group_changed", 0, R"("text":"joins")").add(171, "attempt_started", 0, two);
  first.add(200, "finished");
  CHECK(history_of(first, same).time.length() == 100);
}

TEST_CASE("job_history: fewer nodes are another attempt, also under the same number", "[report]") {
  EventLogText log;
  log.add(100, "attempt_started", 0, R"("nodes":2,"world_size":2)").progress(110, 0, 0, 5, 0);
  EventLogText before("node1", 1);
  before.add(100, "attempt_started", 0, R"("nodes":2,"world_size":2)");
  EventLogText after("node1", 0);
  after.add(150, "attempt_started", 0, R"("nodes":1,"world_size":1)").progress(160, 0, 0, 5, 0);
  const JobHistory history = history_of(log, before, after);
  REQUIRE(history.attempts.size() == 2);
  CHECK(history.attempts[0].time.end == 150);
}

TEST_CASE("job_history: only the last failure's rank is named as the job's end", "[report]") {
  const std::string cause = R"("cause":{"rank":1,"attempt":0,"exit_code":7})";
  EventLogText log;
  log.add(100, "attempt_started").add(110, "restarting", 0, R"("restart":1,)" + cause);
  log.add(111, "attempt_started", 1).add(150, "finished", 1, R"("exit_code":124,"cause":null)");
  CHECK(history_of(log).failures.size() == 1);
  CHECK_FALSE(history_of(log).cause);
}

TEST_CASE("job_history: a hang lasts until a step ends, or the attempt", "[report]") {
  EventLogText log;
  log.add(100, "attempt_started")
      .progress(105, 0, 0, 5, 0)
      .add(200, "hang_found", 0, R"("idle_s":60,"then":"report")");
  log.progress(250, 0, 0, 6, 10).add(300, "hang_found", 0, R"("idle_s":50,"then":"kill")");
  log.add(310, "worker_finished").add(320, "suspended").add(330, "resumed");
  const JobHistory history = history_of(log);
  REQUIRE(history.standstills.size() == 3);
  CHECK(history.standstills[0].begin == 140);
  CHECK(history.standstills[0].end == 240);
  CHECK(history.standstills[1].end == 310);
  CHECK(history.standstills[2].length() == 10);
  CHECK(history.attempts.at(0).problem == "all ranks hung");
  CHECK_FALSE(history.exit_code);
}

TEST_CASE("job_history: what happens again is told again, but once for all nodes", "[report]") {
  const std::string hang = R"("idle_s":600.2,"then":"report")";
  const auto node = [&](int rank) {
    EventLogText log(fmt::format("node{}", rank), rank);
    log.add(100, "attempt_started", 0, R"("nodes":2,"world_size":2)");
    log.add(1000 + rank, "hang_found", 0, hang).add(2000 + 2 * rank, "hang_found", 0, hang);
    log.add(2500, "warning", 0, R"("text":"slow disk")").add(2510, "warning", 0, R"("text":"slow disk")");
    return log.add(3000, "suspended").add(3001, "resumed").add(3002, "suspended").add(3003, "resumed");
  };
  std::vector<double> times;
  for (const Moment& moment : history_of(node(0), node(1)).moments) times.push_back(moment.time);
  CHECK(times == std::vector<double>{1000, 2000, 2500, 2510, 3000, 3001, 3002, 3003});
}

TEST_CASE("job_history: nodes tell one thing also while one waits for workers that do not end", "[report]") {
  const auto node = [&](int rank, double grace) {
    EventLogText log(fmt::format("node{}", rank), rank);
    log.add(100, "attempt_started", 0, R"("nodes":2,"world_size":4)");
    log.add(200 + grace, "group_changed", 0, R"("text":"node2 is lost")");
    return log.add(300 + 10 * grace, "restarting", 0, kCause);
  };
  std::vector<double> times;
  for (const Moment& moment : history_of(node(0, 0), node(1, 30.1)).moments) times.push_back(moment.time);
  CHECK(times == std::vector<double>{200, 300});
}

TEST_CASE("job_history: the time of a slow rank has the unit that fits it", "[report]") {
  EventLogText log;
  log.add(100, "attempt_started")
      .add(200, "straggler_found", 0,
           R"("rank":1,"rank_host":"b","section":"compute","seconds":1.25,"reference_seconds":0.031)")
      .add(300, "hang_found", 0, R"("idle_s":1800,"then":"report")");
  const JobHistory history = history_of(log);
  REQUIRE(history.moments.size() == 2);
  CHECK(history.moments[0].text == "rank 1 on b was slow in compute: 1.25 s a step, others 31 ms");
  CHECK(history.moments[1].text == "no rank has done anything for 1800 s");
}

TEST_CASE("job_history: at which step the loss is not finite, once until it recovers", "[report]") {
  const auto losses = [](int step, const char* first, const char* second) {
    return fmt::format(R"("ranks":[0,1],"steps":[{0},{0}],"loss":[{1},{2}])", step, first, second);
  };
  EventLogText log;
  log.add(100, "attempt_started").add(110, "progress", 0, losses(10, "2", "3"));
  log.add(120, "progress", 0, losses(20, "2", R"("inf")")).add(130, "progress", 0, losses(30, "1", "1"));
  log.add(140, "attempt_started", 1).add(150, "progress", 1, losses(40, "null", "1"));
  log.add(160, "progress", 1, losses(50, R"("nan")", R"("nan")"));
  log.add(170, "progress", 1, losses(60, R"("nan")", R"("nan")"));
  const JobHistory history = history_of(log);
  REQUIRE(history.moments.size() == 2);
  CHECK(history.moments[0].text == "the loss of rank 1 was not finite at step 20");
  CHECK(history.moments[1].text == "the loss of rank 0 is not finite at step 50");
  CHECK(history.moments[1].time == 160);

  EventLogText again;
  again.add(100, "attempt_started").add(110, "progress", 0, losses(20, "2", R"("inf")"));
  again.add(120, "progress", 0, losses(30, "2", "3"));
  for (const int step : {400, 410, 420}) again.add(step, "progress", 0, losses(step, R"("nan")", R"("nan")"));
  std::vector<std::string> texts;
  for (const Moment& moment : history_of(again).moments) texts.push_back(moment.text);
  CHECK(texts == std::vector<std::string>{"the loss of rank 1 was not finite at step 20",
                                          "the loss of rank 0 is not finite at step 400"});
}

TEST_CASE("job_history: workers that start again because a node joins are another attempt", "[report]") {
  EventLogText log;
  log.add(100, "attempt_started")
      .add(110, "worker_finished")
      .add(111, "group_changed", 0, R"("text":"node1 joins","again":true)");
  log.add(112, "attempt_started").add(120, "worker_finished");
  const JobHistory history = history_of(log);
  REQUIRE(history.attempts.size() == 2);
  CHECK(history.attempts[0].problem == "node1 joins");
  CHECK(history.attempts[1].time.length() == 8);
}

TEST_CASE("job_history: attempts that are shorter than clocks differ are counted once", "[report]") {
  // One is ahead, and one behind, by too little for a correction.
  const auto node = [](int rank, double ahead) {
    EventLogText log(fmt::format("node{}", rank), rank);
    for (int attempt = 0; attempt < 4; ++attempt) {
      const double begin = 100 + 0.5 * attempt + ahead;
      log.add(begin, "attempt_started", attempt, R"("nodes":3,"world_size":3)");
      log.add(begin + 0.4, "worker_finished", attempt, fmt::format(R"("rank":{})", rank));
      if (attempt < 3)
        log.add(begin + 0.4, "restarting", attempt,
                fmt::format(R"("restart":{},"cause":{{"rank":{},"attempt":{},"exit_code":1}})", attempt + 1,
                            attempt % 3, attempt));
    }
    return log.add(102 + ahead, "finished", 3, R"("exit_code":7,"restarts":3)");
  };
  const JobHistory history = history_of(node(0, 0), node(1, 0.9), node(2, -0.9));
  std::vector<int> numbers;
  for (const AttemptRecord& attempt : history.attempts) numbers.push_back(attempt.number);
  CHECK(numbers == std::vector<int>{0, 1, 2, 3});
  CHECK(history.exit_code == 7);
  CHECK(history.last.running.empty());
}

TEST_CASE("job_history: the end of a node that leaves is not that of the job", "[report]") {
  // It ends before the other one goes on without it, or its workers take some time.
  for (const double end : {149.9, 170.0}) {
    EventLogText leaving("node0", 0);
    leaving.add(100, "job_started").add(101, "attempt_started", 0, kTwoNodes).add(149, "stopping");
    leaving.add(end, "finished", 0, kStopped);
    EventLogText before("node1", 1);
    before.add(100, "job_started").add(101, "attempt_started", 0, kTwoNodes);
    before.add(149.9, "group_changed", 0, R"("text":"lost")");
    EventLogText after("node1", 0);
    after.add(150, "attempt_started", 0, kOneNode).progress(190, 0, 0, 5, 0);
    // The logs end: whether the other one has succeeded is not known.
    CHECK_FALSE(history_of(leaving, before, after).exit_code);
    after.add(200, "finished", 0, R"("exit_code":0,"stop_signal":null)");
    const JobHistory history = history_of(leaving, before, after);
    CHECK(history.exit_code == 0);
    CHECK(history.stop_signal.empty());
    CHECK(history_of(leaving).exit_code == 143);
    CHECK(history_of(leaving).stop_signal == "SIGTERM");

    // On one machine the one that goes on may get the rank of the one that leaves.
    EventLogText same_before("node0", 1);
    same_before.add(100, "job_started").add(101, "attempt_started", 0, kTwoNodes);
    EventLogText same_after("node0", 0);
    same_after.add(150, "attempt_started", 0, kOneNode).add(200, "finished", 0, R"("exit_code":0)");
    CHECK(history_of(leaving, same_before, same_after).exit_code == 0);
  }
}

TEST_CASE("job_history: the end of a spare is not that of the job", "[report]") {
  const auto node = [](int rank, const std::string& end) {
    EventLogText log(fmt::format("node{}", rank), rank);
    log.add(100, "job_started").add(101, "attempt_started", 0, kTwoNodes).progress(190, 0, rank, 5, 0);
    return log.add(200, "finished", 0, end);
  };
  EventLogText spare("node2");
  spare.add(100, "job_started").add(110, "waiting_for_nodes", 0, R"("text":"a spare")");
  spare.add(150, "failed", 0, R"("exit_code":75,"text":"the connection closed")");
  const std::string success = R"("exit_code":0)";
  const JobHistory history = history_of(node(0, success), node(1, success), spare);
  CHECK(history.exit_code == 0);
  CHECK(history.failed.empty());
  // Where it is the only one that tells an end, it may be that of a node of the job.
  CHECK(history_of(spare).exit_code == 75);
  EventLogText unended("node0");
  unended.add(100, "job_started").add(101, "attempt_started", 0, kTwoNodes);
  CHECK(history_of(unended, spare).exit_code == 75);
  // The ends of nodes that take part count, whichever comes first.
  CHECK(history_of(node(0, success), node(1, R"("exit_code":1)"), spare).exit_code == 1);
  CHECK(history_of(node(0, kStopped), node(1, success), spare).stop_signal == "SIGTERM");

  // On the host of node 0 it gives that one's rank, for it has none.
  EventLogText beside("node0");
  beside.add(100, "job_started").add(110, "waiting_for_nodes", 0, R"("text":"a spare")");
  beside.add(201, "failed", 0, R"("exit_code":75,"text":"the job is over")");
  CHECK(history_of(node(0, success), node(1, success), beside).exit_code == 0);
  CHECK(history_of(node(0, R"("exit_code":1)"), node(1, success), beside).failed.empty());
}

TEST_CASE("job_history: a node that cannot begin the next attempt has ended the job", "[report]") {
  EventLogText able("node0");
  able.add(100, "job_started").add(101, "attempt_started", 0, kTwoNodes).add(150, "restarting", 0, kCause);
  able.add(151, "attempt_started", 1, kTwoNodes).add(160, "finished", 1, R"("exit_code":1)");
  EventLogText unable("node1", 1);
  unable.add(100, "job_started").add(101, "attempt_started", 0, kTwoNodes).add(150, "restarting", 0, kCause);
  unable.add(155, "failed", 1, R"("exit_code":2,"text":"no memory")");
  const JobHistory history = history_of(able, unable);
  CHECK(history.exit_code == 2);
  CHECK(history.failed == "no memory");
}

TEST_CASE("job_history: the end of a spare that takes part is that of the job", "[report]") {
  // As many nodes as before begin anew, and any of them is the first to say so.
  for (const double begin : {149.999, 150.001}) {
    EventLogText staying("node0");
    staying.add(100, "job_started").add(101, "attempt_started", 0, kTwoNodes);
    staying.add(150, "attempt_started", 0, kTwoNodes).progress(190, 0, 0, 5, 0);
    EventLogText lost("node1", 1);
    lost.add(100, "job_started").add(101, "attempt_started", 0, kTwoNodes);
    EventLogText spare("node2", 1);
    spare.add(100, "job_started").add(begin, "attempt_started", 0, kTwoNodes);
    spare.add(200, "finished", 0, R"("exit_code":1)");
    const JobHistory history = history_of(staying, lost, spare);
    CHECK(history.attempts.size() == 2);
    CHECK(history.exit_code == 1);
  }
  EventLogText stopped("node0");
  stopped.add(100, "job_started").add(101, "attempt_started", 0, kOneNode).add(150, "finished", 0, kStopped);
  EventLogText spare("node1");
  spare.add(100, "job_started").add(152, "attempt_started", 0, kOneNode).progress(160, 0, 0, 5, 0);
  spare.add(200, "finished", 0, R"("exit_code":0)");
  CHECK(history_of(stopped, spare).exit_code == 0);
  CHECK(history_of(stopped, spare).stop_signal.empty());
}

TEST_CASE("job_history: a log without events is empty", "[report]") {
  CHECK(job_history({}).attempts.empty());
}

}  // namespace job_history_test
