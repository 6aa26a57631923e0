// SPDX-License-Identifier: Apache-2.0
#include "acc/top/top_screen.hpp"

#include "acc/base/text.hpp"
#include "support/catch.hpp"

namespace top_screen_test {

using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

const std::chrono::system_clock::time_point kNow{20'000h};

// Rank 2 loads slowly, and the others wait for it.
TopReading reading() {
  JobUsage usage;
  usage.job = {.id = "train-4711",
               .attempt = 1,
               .max_restarts = 3,
               .started = kNow - 72s,
               .command = {"train.py", "--epochs", "3"}};
  for (int rank = 0; rank < 3; ++rank) {
    ProgressView progress{.steps = 812,
                          .step_time = ProgressView::Seconds(0.1),
                          .since_step = ProgressView::Seconds(0.05),
                          .loss = 0.1827};
    if (rank == 2) {
      progress.section = "data";
      progress.in_section = ProgressView::Seconds(9);
      progress.slow_in = "data";
    } else {
      progress.section = "communication";
      progress.collective = "all_reduce";
      progress.in_collective = ProgressView::Seconds(9);
    }
    usage.job.ranks.push_back({.rank = rank, .local_rank = rank, .pid = 4714 + rank, .progress = progress});
    usage.ranks.push_back({.state = "sleeping",
                           .uptime = 72s,
                           .cpu_percent = 2.0 + rank,
                           .memory_bytes = std::uint64_t{210} << 20U,
                           .processes = 1,
                           .threads = 6});
  }
  RateWindow rates;
  rates.observe({usage}, {});
  return reading_of({usage}, {}, rates, kNow);
}

std::string screen(TopReading snapshot, std::size_t columns = 80, std::size_t rows = 9,
                   const std::string& keys = {}) {
  TopState state;
  state.show(std::move(snapshot));
  for (const char key : keys)
    state.press({Key::text, std::string(1, key)}, table_lines(rows, state.shows_past()));
  const std::string text = draw_plain(state, {.columns = columns, .rows = rows, .host = "node-1"});
  CHECK(static_cast<std::size_t>(std::ranges::count(text, '\n')) == rows);
  return text;
}

std::string line_of(const std::string& text, std::size_t number) {
  return acc::split(text, '\n').at(number);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("top_screen: 80 columns have what matters most", "[top]") {
  const std::string text = screen(reading());
  CHECK(line_of(text, 0).starts_with(" acc top  node-1  1 job, 3 ranks "));
  CHECK(line_of(text, 1) ==
        "  RANK STATE    SECTION                  STEP STEP/S DATA% COMM%  CPU%   MEMORY");
  CHECK(line_of(text, 2) == " - train-4711  up 1m12s  restarts 1 of 3  train.py --epochs 3");
  CHECK(line_of(text, 3) ==
        "     0 sleeping all_reduce 9s             812     10     -     -     2  210 MiB");
  CHECK(line_of(text, 5) ==
        "     2 sleeping slow in data: data 9s     812     10     -     -     4  210 MiB");
  CHECK(line_of(text, 8) == " Enter logs  t stacks  x stop  Space fold  s sort  / filter  ? help  q quit");
}

TEST_CASE("top_screen: 200 columns have all", "[top]") {
  const std::string text = screen(reading(), 200);
  CHECK(has(line_of(text, 1), "LOSS     UP THREADS     PID OUTPUT"));
  CHECK(has(line_of(text, 3), " 0.1827  1m12s       6    4714 passed on"));
}

TEST_CASE("top_screen: GPUs have columns where there are some", "[top]") {
  TopReading snapshot = reading();
  snapshot.jobs[0].ranks[0].usage.gpus = {
      {.index = 0, .memory_bytes = std::uint64_t{3} << 30U, .use = 97, .watts = 301.5}};
  const std::string text = screen(std::move(snapshot), 120);
  CHECK(has(line_of(text, 1), "CPU% GPU%  GPU MEM  POWER   MEMORY"));
  CHECK(has(line_of(text, 3), "97  3.0 GiB  302 W  210 MiB"));
  CHECK(has(line_of(text, 4), "   -        -      -  210 MiB"));
}

TEST_CASE("top_screen: hosts have a column where there are several, and what is missing is said", "[top]") {
  TopReading snapshot = reading();
  for (TopRank& rank : snapshot.jobs[0].ranks) rank.host = "node-1";
  snapshot.jobs[0].ranks[1].host = "node-2";
  snapshot.jobs[0].ranks[1].is_remote = true;
  snapshot.jobs[0].missing = {"2 ranks on node-3: it does not answer"};
  const std::string text = screen(std::move(snapshot), 120, 9, "jjl");
  CHECK(line_of(text, 1).starts_with("  RANK HOST       STATE    SECTION "));
  CHECK(has(line_of(text, 2), "restarts 1 of 3  [2 ranks on node-3: it does not answer]  train.py"));
  CHECK(line_of(text, 3).starts_with("     0 node-1     sleeping all_reduce 9s "));
  CHECK(line_of(text, 4).starts_with("     1 node-2     sleeping all_reduce 9s "));
  CHECK(line_of(text, 8) == " rank 1 is on node-2: acc top has its output, stacks and gdb there");
}

TEST_CASE("top_screen: a folded job is one line that says who stands out", "[top]") {
  const std::string text = screen(reading(), 120, 9, " ");
  CHECK(line_of(text, 2) ==
        " + train-4711  up 1m12s  restarts 1 of 3  3 ranks: 3 sleeping; step 812; slow: rank 2; awaited: "
        "rank 2");
  CHECK(line_of(text, 3).empty());
}

TEST_CASE("top_screen: the selected line is always on the screen", "[top]") {
  TopReading snapshot = reading();
  for (int rank = 3; rank < 60; ++rank) {
    snapshot.jobs[0].ranks.push_back(snapshot.jobs[0].ranks[0]);
    snapshot.jobs[0].ranks.back().view.rank = rank;
  }
  CHECK(has(screen(snapshot), "\n     4 sleeping"));
  CHECK(has(screen(snapshot, 80, 9, std::string(30, 'j')), "\n    29 sleeping"));
  CHECK(has(screen(snapshot, 80, 9, "G"), "\n    59 sleeping"));
  CHECK_FALSE(has(screen(snapshot, 80, 9, "G"), "\n\n"));
}

TEST_CASE("top_screen: says what it waits for when there is nothing to show", "[top]") {
  CHECK(has(screen({}), "no job of yours is running on this machine"));
  CHECK(has(screen(reading(), 80, 9, "/nothing"), "no rank matches the filter"));
  CHECK(has(screen(reading(), 80, 9, "/nothing"), "filter: nothing_"));
  CHECK(has(screen(reading_of({}, {"train-9"}, RateWindow(), kNow)), "\n ? train-9  does not answer\n"));
}

TEST_CASE("top_screen: asks before it stops a job, and explains itself", "[top]") {
  CHECK(has(screen(reading(), 80, 9, "x"), " stop train-4711? y: yes, any other key: no"));
  const std::string help = screen(reading(), 80, 24, "?");
  CHECK(has(help, "awaited        others have been in a collective"));
  CHECK(has(help, " any key: back"));
}

TEST_CASE("top_screen: text of others moves no cursor, and wide characters keep the columns", "[top]") {
  TopReading snapshot = reading();
  snapshot.jobs[0].job.command = {"\x1b[2J", "数据.py"};
  snapshot.jobs[0].ranks[0].usage.state = "数据";
  const std::string text = screen(std::move(snapshot));
  CHECK(has(text, "\\x1b[2J 数据.py"));
  CHECK(line_of(text, 3) ==
        "     0 数据     all_reduce 9s             812     10     -     -     2  210 MiB");
}

TEST_CASE("top_screen: any size can be drawn", "[top]") {
  for (const std::size_t columns : {1U, 4U, 20U, 41U, 500U}) {
    for (const std::size_t rows : {1U, 2U, 3U, 4U}) screen(reading(), columns, rows);
  }
}

TEST_CASE("top_screen: without color there are none, and what stands out is bold", "[top]") {
  TopState state;
  state.show(reading());
  const std::string plain = draw(state, {.color = false});
  CHECK(plain.starts_with("\x1b[?2026h\x1b[H"));
  CHECK_FALSE(has(plain, "\x1b[33m"));
  CHECK(has(plain, "\x1b[1m"));
  CHECK(has(draw(state, {}), "\x1b[33m"));
}

namespace {

// Twice as fast in the last five minutes.
TopReading reading_with_past() {
  TopReading snapshot = reading();
  StepHistory history;
  std::int64_t steps = 0;
  for (int age = 600; age >= 0; --age)
    history.seconds.push_back({.age = age * 1s, .steps = steps += age > 300 ? 2 : 4});
  snapshot.past = RankPast{{"train-4711", 2}, history};
  return snapshot;
}

}  // namespace

TEST_CASE("top_screen: the past of the selected rank is below the table", "[top]") {
  const std::string text = screen(reading_with_past(), 80, 24, "pjjj");
  CHECK(line_of(text, 5).starts_with("     2 sleeping"));
  CHECK(line_of(text, 15).starts_with(" rank 2, 10 min: at most 4 steps/s "));
  CHECK(has(line_of(text, 15), " 24 h: not known yet"));
  // The later half is full, the earlier one is half as high.
  CHECK_FALSE(has(line_of(text, 17).substr(0, 15), "█"));
  CHECK(has(line_of(text, 17), "█████████████████"));
  CHECK(has(line_of(text, 22), "███████████████████████████████████"));
}

TEST_CASE("top_screen: time without a step is a line, time of which nothing is known is blank", "[top]") {
  TopReading snapshot = reading_with_past();
  auto& seconds = snapshot.past->history->seconds;
  // Nothing in the first three minutes, and no step in the last five.
  std::erase_if(seconds, [](const StepHistory::Sample& sample) { return sample.age > 420s; });
  for (StepHistory::Sample& sample : seconds) {
    if (sample.age < 300s) sample.steps = 604;
    if (sample.age < 300s) sample.since_step = 300s - sample.age;
  }
  const std::string text = screen(std::move(snapshot), 80, 24, "pjjj");
  const std::string lowest = line_of(text, 22);
  CHECK(lowest.starts_with(std::string(10, ' ')));
  CHECK(has(lowest, "████"));
  CHECK(has(lowest, "▄▄▄▄▄▄▄▄"));
}

TEST_CASE("top_screen: says what is missing for the past of a rank", "[top]") {
  CHECK(has(screen(reading_with_past(), 80, 24, "p"), " select a rank to see its steps a second"));
  CHECK(has(screen(reading_with_past(), 80, 24, "pj"), " rank 0: asking its job"));
  CHECK(has(screen(reading_with_past(), 80, 12, "pjjj"), " need a terminal of 19 lines"));
  TopReading unknown = reading_with_past();
  unknown.past->history.reset();
  CHECK(has(screen(unknown, 80, 24, "pjjj"), " nothing is known of the past of rank 2"));
}

}  // namespace top_screen_test
