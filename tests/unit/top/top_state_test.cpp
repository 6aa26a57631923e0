// SPDX-License-Identifier: Apache-2.0
#include "acc/top/top_state.hpp"

#include "support/catch.hpp"

namespace top_state_test {

using namespace acc::launcher;

namespace {

TopJob job_of(const std::string& id, int ranks) {
  TopJob job;
  job.job.id = id;
  job.job.command = {"train.py"};
  for (int rank = 0; rank < ranks; ++rank) {
    job.ranks.push_back(
        {.view = {.rank = rank, .pid = 100 + rank, .progress = ProgressView{.steps = 10 * rank}},
         .usage = {.state = "running", .cpu_percent = 100.0 - rank, .processes = 1}});
  }
  return job;
}

TopState showing(std::vector<TopJob> jobs) {
  TopState state;
  state.show({.jobs = std::move(jobs)});
  return state;
}

std::optional<TopAction> type(TopState& state, const std::string& keys) {
  std::optional<TopAction> action;
  for (const char key : keys) action = state.press({Key::text, std::string(1, key)}, 10);
  return action;
}

// `a: 0 1 2, b`
std::string text_of(const TopState& state) {
  std::string text;
  for (const TopLine& line : state.lines()) {
    text += line.rank == nullptr ? (text.empty() ? "" : ", ") + line.job->job.id + ":"
                                 : " " + std::to_string(line.rank->view.rank);
  }
  return text;
}

}  // namespace

TEST_CASE("top_state: jobs and their ranks, by rank", "[top]") {
  CHECK(text_of(showing({job_of("a", 3), job_of("b", 1)})) == "a: 0 1 2, b: 0");
  CHECK(text_of(showing({job_of("importing", 0)})) == "importing:");
}

TEST_CASE("top_state: s sorts by the next column, the greatest first, and r reverses", "[top]") {
  TopState state = showing({job_of("a", 3)});
  type(state, "s");
  CHECK(state.order() == TopOrder::step);
  CHECK(text_of(state) == "a: 2 1 0");
  type(state, "r");
  CHECK(text_of(state) == "a: 0 1 2");
  type(state, "rssss");
  CHECK(state.order() == TopOrder::cpu);
  CHECK(text_of(state) == "a: 0 1 2");
  type(state, "ss");
  CHECK(state.order() == TopOrder::rank);
}

TEST_CASE("top_state: p asks for the past of the selected rank, until it is pressed again", "[top]") {
  TopState state = showing({job_of("a", 3)});
  type(state, "jj");
  CHECK_FALSE(state.rank_of_past());
  type(state, "p");
  CHECK(state.rank_of_past() == RankId{"a", 1});
  type(state, "j");
  CHECK(state.rank_of_past() == RankId{"a", 2});
  type(state, "g");
  CHECK_FALSE(state.rank_of_past());
  type(state, "jp");
  CHECK_FALSE(state.rank_of_past());
}

TEST_CASE("top_state: what a rank does not say is the least", "[top]") {
  TopJob job = job_of("a", 3);
  job.ranks[1].view.progress.reset();
  TopState state = showing({job});
  type(state, "s");
  CHECK(text_of(state) == "a: 2 0 1");
}

TEST_CASE("top_state: the selection stays with its rank, and moves on when that goes", "[top]") {
  TopState state = showing({job_of("a", 3), job_of("b", 2)});
  CHECK(state.selected() == 0);
  type(state, "jj");
  CHECK(state.selected() == 2);
  state.show({.jobs = {job_of("0", 1), job_of("a", 3)}});
  CHECK(state.selected() == 4);
  state.show({.jobs = {job_of("b", 2)}});
  CHECK(state.selected() == 2);
  state.show({});
  CHECK_FALSE(type(state, "lxt"));
}

TEST_CASE("top_state: keys move by a line, by a page and to the ends", "[top]") {
  TopState state = showing({job_of("a", 30)});
  state.press({Key::page_down, ""}, 10);
  CHECK(state.selected() == 9);
  state.press({Key::up, ""}, 10);
  CHECK(state.selected() == 8);
  state.press({Key::end, ""}, 10);
  CHECK(state.selected() == 30);
  state.press({Key::page_up, ""}, 10);
  CHECK(state.selected() == 21);
  state.press({Key::home, ""}, 10);
  CHECK(state.selected() == 0);
}

TEST_CASE("top_state: large jobs are folded until the user unfolds them", "[top]") {
  TopState state = showing({job_of("large", 65), job_of("b", 2)});
  CHECK(text_of(state) == "large:, b: 0 1");
  type(state, " ");
  CHECK(state.lines().size() == 1 + 65 + 3);
  type(state, "jj ");
  CHECK(text_of(state) == "large:, b: 0 1");
  CHECK(state.selected() == 0);
}

TEST_CASE("top_state: a filter leaves ranks, and the jobs that have some", "[top]") {
  TopJob job = job_of("a", 3);
  job.ranks[2].view.progress->slow_in = "data";
  TopState state = showing({job, job_of("b", 2)});
  type(state, "/SLO");
  CHECK(state.mode() == TopState::Mode::filter);
  CHECK(text_of(state) == "a: 2");
  state.press({Key::backspace, ""}, 10);
  CHECK(state.filter() == "SL");
  state.press({Key::enter, ""}, 10);
  CHECK(state.mode() == TopState::Mode::table);
  state.press({Key::escape, ""}, 10);
  CHECK(text_of(state) == "a: 0 1 2, b: 0 1");
  CHECK(TopState("train.py").filter() == "train.py");
}

TEST_CASE("top_state: a filter loses whole characters", "[top]") {
  TopState state;
  type(state, "/a");
  state.press({Key::text, "é"}, 10);
  state.press({Key::backspace, ""}, 10);
  CHECK(state.filter() == "a");
  for (int i = 0; i < 3; ++i) state.press({Key::backspace, ""}, 10);
  CHECK(state.filter().empty());
}

TEST_CASE("top_state: keys ask for the selected rank, or for the whole job", "[top]") {
  TopState state = showing({job_of("a", 3)});
  CHECK(type(state, "l") == TopAction{.kind = TopAction::Kind::logs, .job = "a"});
  CHECK_FALSE(type(state, "d"));
  type(state, "jj");
  CHECK(type(state, "l") == TopAction{.kind = TopAction::Kind::logs, .job = "a", .rank = 1, .pid = 101});
  CHECK(type(state, "t")->kind == TopAction::Kind::stacks);
  CHECK(type(state, "d") == TopAction{.kind = TopAction::Kind::debug, .job = "a", .rank = 1, .pid = 101});
  CHECK(type(state, "q") == TopAction{});
  TopJob job = job_of("a", 3);
  job.ranks[1].view.ended = "exit code 1";
  state.show({.jobs = {job}});
  CHECK_FALSE(type(state, "d"));
}

TEST_CASE("top_state: a job is stopped only after a yes", "[top]") {
  TopState state = showing({job_of("a", 3)});
  CHECK_FALSE(type(state, "x"));
  CHECK(state.mode() == TopState::Mode::confirm_stop);
  CHECK_FALSE(type(state, "q"));
  CHECK(state.mode() == TopState::Mode::table);
  type(state, "x");
  CHECK_FALSE(state.press({Key::enter, ""}, 10));
  type(state, "x");
  CHECK(type(state, "y") == TopAction{.kind = TopAction::Kind::stop, .job = "a"});
}

TEST_CASE("top_state: who is asked for a yes reads on which nodes the job ends", "[top]") {
  TopJob job = job_of("a", 3);
  const auto scope = [&] {
    TopState state = showing({job});
    type(state, "jx");
    return state.scope_of_stop();
  };
  CHECK(scope() == "a");
  job.job.rendezvous = "connected";
  job.ranks[0].is_remote = true;
  CHECK(scope() == "a on all its nodes");
  job.job.stops_alone = "this node is a spare";
  CHECK(scope() == "a on this machine alone (this node is a spare)");
  job.job = {.id = "a", .hosts = 2};
  CHECK(scope() == "a on all its nodes");
}

TEST_CASE("top_state: the job that is stopped is the one that was asked about", "[top]") {
  TopState state = showing({job_of("a", 3), job_of("b", 3)});
  type(state, "x");
  CHECK(state.scope_of_stop() == "a");
  SECTION("it has ended meanwhile") {
    state.show({.jobs = {job_of("b", 3)}});
    CHECK(state.mode() == TopState::Mode::table);
    CHECK_FALSE(type(state, "y"));
  }
  SECTION("it does not answer meanwhile") {
    state.show({.jobs = {job_of("b", 3), {.job = {.id = "a"}, .is_silent = true}}});
    CHECK(type(state, "y") == TopAction{.kind = TopAction::Kind::stop, .job = "a"});
  }
}

TEST_CASE("top_state: those that others wait for in a collective are marked", "[top]") {
  JobUsage usage;
  usage.job.id = "a";
  const auto waits = [](double seconds) {
    return ProgressView{.collective = "all_reduce", .in_collective = ProgressView::Seconds(seconds)};
  };
  usage.job.ranks = {{.rank = 0, .progress = waits(1.5)},
                     {.rank = 1, .progress = ProgressView{.section = "data"}},
                     {.rank = 2},
                     {.rank = 3, .ended = "exit code 0", .progress = ProgressView{}}};
  usage.ranks.resize(4);
  const auto awaited = [&] {
    std::vector<int> ranks;
    const TopReading reading = reading_of({usage}, {}, RateWindow(), {});
    for (const TopRank& rank : reading.jobs.at(0).ranks) {
      if (rank.is_awaited) ranks.push_back(rank.view.rank);
    }
    return ranks;
  };
  CHECK(awaited() == std::vector{1});
  usage.job.ranks[0].progress = waits(0.5);
  CHECK(awaited().empty());
}

TEST_CASE("top_state: a client of --hosts has no logs, and can be stopped", "[top]") {
  TopJob job = job_of("client", 0);
  job.job.hosts = 2;
  TopState state = showing({job});
  for (const char* key : {"l", "t", "d"}) CHECK_FALSE(type(state, key));
  CHECK(state.notice() == "client runs on other hosts: acc top has its output and stacks there");
  CHECK(type(state, "xy") == TopAction{.kind = TopAction::Kind::stop, .job = "client"});
}

TEST_CASE("top_state: a job that does not answer can be selected, and stopped when it answers", "[top]") {
  TopState state;
  state.show(reading_of({{.job = {.id = "a"}}}, {"b"}, RateWindow(), {}));
  CHECK(text_of(state) == "a:, b:");
  for (const char* key : {"l", "t", "d"}) CHECK_FALSE(type(state, std::string("j") + key));
  CHECK(state.notice() == "b does not answer: its agent is suspended or stuck");
  CHECK(type(state, "xy") == TopAction{.kind = TopAction::Kind::stop, .job = "b"});
}

TEST_CASE("top_state: ranks of all nodes are in order, and those of others have no logs here", "[top]") {
  JobUsage usage;
  usage.job = {.id = "a", .world_size = 4, .ranks = {{.rank = 1, .pid = 7}}};
  usage.ranks = {{.state = "running", .processes = 1}};
  usage.other_nodes = {.host = "here",
                       .nodes = {{.host = "there",
                                  .workers = 1,
                                  .age = std::chrono::seconds(12),
                                  .ranks = {{.rank = 0, .pid = 8}},
                                  .usage = {{.state = "running", .processes = 1}}},
                                 {.host = "older", .workers = 2, .problem = "it runs an older acc"}}};
  TopState state;
  state.show(reading_of({usage}, {}, RateWindow(), {}));
  CHECK(text_of(state) == "a: 0 1");
  CHECK(state.lines()[1].rank->usage.state == "silent 12s");
  CHECK(state.lines()[2].rank->host == "here");
  CHECK(state.reading().jobs[0].missing ==
        std::vector<std::string>{"2 ranks on older: it runs an older acc"});
  for (const char* key : {"l", "t", "d"}) {
    state.press({Key::home, ""}, 10);
    CHECK_FALSE(type(state, std::string("j") + key));
    CHECK(state.notice() == "rank 0 is on there: acc top has its output, stacks and gdb there");
  }
  CHECK(type(state, "jl") == TopAction{.kind = TopAction::Kind::logs, .job = "a", .rank = 1, .pid = 7});
  CHECK(state.notice().empty());
  type(state, "kx");
  CHECK(state.scope_of_stop() == "a");
  type(state, "n/there");
  CHECK(text_of(state) == "a: 0");
}

}  // namespace top_state_test
