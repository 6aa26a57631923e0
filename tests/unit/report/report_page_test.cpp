// SPDX-License-Identifier: Apache-2.0
#include "acc/report/report_page.hpp"

#include "acc/report/html_text.hpp"
#include "support/catch.hpp"
#include "support/event_log.hpp"

namespace report_page_test {

using namespace acc;
using namespace acc::launcher;
using test::EventLogText;
using test::history_of;

namespace {

// A simulated job: a sample a minute of each rank, whose step times differ.
JobHistory long_job(int ranks, int minutes) {
  JobHistory history = {.run_id = "job7", .time = {0, 60.0 * minutes}, .hosts = {"node0"}, .exit_code = 0};
  history.command = {"train"};
  AttemptRecord& attempt =
      history.attempts.emplace_back(AttemptRecord{.time = history.time, .world_size = ranks});
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<RankSample>& samples = attempt.ranks[rank];
    RankSample sample = {.steps = 0, .cpu_seconds = 0, .memory_bytes = 1e9};
    for (int minute = 1; minute <= minutes; ++minute) {
      sample.time = 60.0 * minute;
      sample.step_ended = sample.time;
      *sample.steps += 20 + (rank * 7919 + minute * 104729) % 97;
      for (std::size_t i = 0; i < kSections.size(); ++i)
        sample.spent.at(i) += static_cast<float>((rank * 31 + minute * 17 + static_cast<int>(i) * 13) % 29);
      samples.push_back(sample);
    }
  }
  return history;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t occurrences = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++occurrences;
  return occurrences;
}

}  // namespace

TEST_CASE("report_page: foreign text is no markup", "[report]") {
  const std::string hostile = R"(\"><script>alert(1)</script><img src=x onerror=alert(2)>\u001b[31m)";
  EventLogText log("no<b>de", 0, hostile);
  log.add(10, "job_started", 0,
          R"("command":["train)" + hostile + R"("],"settings":{")" + hostile + R"(":{"value":")" + hostile +
              R"(","origin":")" + hostile + R"("}})");
  log.add(11, "attempt_started").add(12, "warning", 0, R"("text":")" + hostile + '"');
  log.add(13, "group_changed", 0, R"("text":")" + hostile + '"');
  log.add(14, "straggler_found", 0, R"("rank":1,"section":")" + hostile + '"');
  log.add(20, "finished", 0,
          R"("exit_code":1,"stop_signal":null,"cause":{"rank":1,"host":")" + hostile +
              R"(","exit_code":1,"message":")" + hostile + R"(","last_words":")" + hostile + R"("})");
  const std::string page = report_page(history_of(log));
  CHECK(count(page, "<script") == 0);
  CHECK(count(page, "<img") == 0);
  CHECK(count(page, "<b>") == 0);
  CHECK(count(page, "\x1b") == 0);
  CHECK(count(page, "&lt;script&gt;") > 8);
}

TEST_CASE("report_page: needs no script, no network and no other file", "[report]") {
  const std::string page = report_page(long_job(3, 10));
  CHECK(count(page, "default-src 'none'") == 1);
  for (const char* word : {"<script", "http:", "https:", "@import", "url(", "<link", "src="})
    CHECK(count(page, word) == 0);
  CHECK(count(page, "prefers-color-scheme: dark") == 1);
  CHECK(count(page, "@media print") == 1);
}

TEST_CASE("report_page: 1,000 ranks and a day are below 5 MB", "[report]") {
  const std::string page = report_page(long_job(1000, 1440));
  CHECK(page.size() > 500'000);
  CHECK(page.size() < 5'000'000);
  CHECK(count(page, "ranks 996 to 999") > 0);
}

TEST_CASE("report_page: tells how the job ended, and shows only what is known", "[report]") {
  EventLogText log;
  log.add(10, "attempt_started", 0, R"("nodes":1,"world_size":2)").add(30, "worker_finished");
  const std::string silent = report_page(history_of(log.add(31, "finished", 0, R"("exit_code":0)")));
  CHECK(count(silent, "Succeeded after 21 s.") == 1);
  CHECK(count(silent, "no rank said how far it was") >= 1);
  CHECK(count(silent, "<h2>Step time</h2>") == 0);
  CHECK(count(silent, "<h2>Failures</h2>") == 0);
  const std::string page = report_page(long_job(2, 10));
  CHECK(count(page, "<h2>Step time</h2>") == 1);
  CHECK(count(page, "<h2>Sections</h2>") == 1);
}

TEST_CASE("report_page: a loss that is not finite is the loss at the end", "[report]") {
  EventLogText log;
  log.add(10, "attempt_started");
  for (int i = 0; i < 6; ++i)
    log.add(20 + i, "progress", 0,
            fmt::format(R"("ranks":[0],"steps":[{}],"loss":[{}])", i, i < 3 ? "1.5" : "\"nan\""));
  const std::string page = report_page(history_of(log));
  CHECK(count(page, "loss, mean of the ranks, at most 1.5; at the end nan") == 2);
  CHECK(count(page, "<td>the loss of rank 0 is not finite at step 3</td>") == 1);
}

TEST_CASE("report_page: names the step of a training that went on, and counts those of others", "[report]") {
  const auto page = [](bool over_restarts) {
    EventLogText log;
    log.add(1, "attempt_started").progress(10, 0, 0, 10001, 0, "", over_restarts);
    return report_page(history_of(log.progress(20, 0, 0, 10500, 0, "", over_restarts)));
  };
  CHECK(count(page(true), "<dt>Highest step</dt><dd>" + count_text(10500) +
                              " <small>as the training counts</small></dd>") == 1);
  CHECK(count(page(true), "<dt>Steps</dt>") == 0);
  CHECK(count(page(false),
              "<dt>Steps</dt><dd>" + count_text(10500) + " <small>each counted once</small></dd>") == 1);
}

TEST_CASE("report_page: losses below zero are drawn between the lowest and the highest", "[report]") {
  EventLogText log;
  log.add(0.5, "attempt_started");
  for (const int i : {1, 2, 3})
    log.add(i, "progress", 0, fmt::format(R"("ranks":[0],"steps":[{0}],"loss":[-{0}])", i));
  const std::string page = report_page(history_of(log));
  CHECK(count(page, "loss, mean of the ranks, between -3 and -1; at the end -3") == 2);
  CHECK(count(page, "20.00,4.8 60.00,52.4 100.00,100.0 ") == 1);
}

TEST_CASE("report_page: shows GPUs and their energy where they are known", "[report]") {
  EventLogText log;
  log.add(10, "attempt_started", 0, R"("nodes":1,"world_size":1)")
      .add(70, "gpu_use", 0, R"("gpus":[0],"use_percent":[90],"watts":[300],"joules":[1000])")
      .add(130, "gpu_use", 0, R"("gpus":[0],"use_percent":[96],"watts":[350],"joules":[20800])")
      .add(140, "finished", 0, R"("exit_code":0)");
  const std::string page = report_page(history_of(log));
  CHECK(count(page, "<h2>GPUs</h2>") == 1);
  CHECK(count(page, "use of a GPU, at most 96.0 %; at the end 96.0 %") == 2);
  CHECK(count(page, "power of a GPU, at most 350 W") == 2);
  CHECK(count(page, "memory of a GPU") == 0);
  CHECK(count(page, "<dd>5.5 Wh <small>of 1 GPU</small>") == 1);
  CHECK(count(report_page(long_job(2, 10)), "GPU") == 0);
}

TEST_CASE("report_page: says that memory that processes share counts in each", "[report]") {
  CHECK(count(report_page(long_job(2, 10)),
              "resident memory of a rank and its child processes, each with what they share, at most 954 "
              "MiB") == 2);
}

TEST_CASE("report_page: of many moments the first and the last are shown", "[report]") {
  const auto page = [](int moments) {
    JobHistory history = long_job(2, 10);
    for (int i = 0; i < moments; ++i) history.moments.push_back({.text = fmt::format("moment {}.", i)});
    const std::string text = report_page(history);
    // Of the table, not of the lane above it.
    return text.substr(text.find("<th>details</th>"));
  };
  CHECK(count(page(200), "<td>moment ") == 200);
  CHECK(count(page(200), "left out") == 0);
  CHECK(count(page(203), "<td>moment ") == 200);
  CHECK(count(page(203),
              "<td>moment 99.</td></tr>\n<tr><td></td><td></td><td class=\"soft\">3 left "
              "out here</td></tr>\n") == 1);
  CHECK(count(page(203), "<td>moment 102.</td>") == 0);
  CHECK(count(page(203), "<td>moment 103.</td>") == 1);
  CHECK(count(page(203), "<td>moment 202.</td>") == 1);
}

TEST_CASE("report_page: bars that cannot be told apart are one, which says how many", "[report]") {
  const auto lane = [](int saves) {
    EventLogText log;
    log.add(100, "attempt_started");
    for (int i = 1; i <= saves; ++i) {
      log.progress(100 + 10 * i, 0, 0, 10 * i, 0, fmt::format(R"("saving":[{}])", i));
      log.progress(105 + 10 * i, 0, 0, 10 * i + 5, 0, fmt::format(R"("saving":[{}])", i));
    }
    const std::string page = report_page(history_of(log));
    const std::size_t begin = page.find("<small>saving</small>");
    return page.substr(begin, page.find("</div>", begin) - begin);
  };
  CHECK(count(lane(1000), "<rect") == 1000);
  CHECK(count(lane(1000), "the first") == 0);
  const std::string merged = lane(4000);
  CHECK(count(merged, "<rect") <= 1001);
  CHECK(count(merged, "<title>5 between ") > 700);
  // Until the end.
  CHECK(count(merged, R"(<rect x="99.)") > 5);

  EventLogText log;
  for (int i = 0; i < 1500; ++i)
    log.add(100 + i, "attempt_started", i)
        .add(100.5 + i, "restarting", i, R"("restart":1,"cause":{"rank":0,"exit_code":1})");
  const std::string page = report_page(history_of(log.add(1600, "attempt_started", 1500)));
  CHECK(count(page, R"(class="restarting"><title>2 between )") > 500);
  CHECK(count(page, "; the first: attempt 0: 0 s to 1 s, 1 rank on 1 node") == 1);
}

TEST_CASE("report_page: an empty history is a page, too", "[report]") {
  CHECK(report_page({}).ends_with("</html>\n"));
}

}  // namespace report_page_test
