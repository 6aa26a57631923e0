// SPDX-License-Identifier: Apache-2.0
#include "acc/control/progress_view.hpp"

#include <cmath>
#include <limits>

#include "acc/base/text.hpp"
#include "support/catch.hpp"

namespace progress_view_test {

using namespace acc;
using namespace acc::launcher;
using namespace std::chrono_literals;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Progress waiting() {
  Progress progress{.pid = 12,
                    .steps = 40,
                    .step_ended = 97s,
                    .step_duration = 250ms,
                    .samples = 1280,
                    .loss = 0.5,
                    .section = Section::communication,
                    .section_began = 98s,
                    .collectives = 41,
                    .collective = "all_reduce",
                    .collective_began = 98s};
  progress.spent[1] = 30s;
  progress.spent[4] = 5s;
  return progress;
}

}  // namespace

TEST_CASE("progress_view: ages at the moment of reading", "[control]") {
  const ProgressView view = view_of(waiting(), 100s);
  CHECK(view.steps == 40);
  CHECK(view.step_time == 250ms);
  CHECK(view.since_step == 3s);
  CHECK(view.section == "communication");
  CHECK(view.in_section == 2s);
  CHECK(view.collective == "all_reduce");
  CHECK(view.in_collective == 2s);
  CHECK(view.spent.at("data") == 30s);
  CHECK(view.spent.at("communication") == 7s);  // this one counts, too
  CHECK(view.spent.at("forward") == 0s);
}

TEST_CASE("progress_view: before the first step there is no time of a step", "[control]") {
  const ProgressView view = view_of({.section = Section::data, .section_began = 99s}, 100s);
  CHECK_FALSE(view.step_time);
  CHECK_FALSE(view.since_step);
  CHECK_FALSE(view.loss);
  CHECK(view.collective.empty());
}

TEST_CASE("progress_view: a page that was written after the clock was read has no negative age",
          "[control]") {
  CHECK(view_of({.step_ended = 101s, .section_began = 101s}, 100s).in_section == 0s);
}

TEST_CASE("progress_view: is read as it was sent", "[control]") {
  const std::optional<ProgressView> view = view_of(waiting(), 100s);
  CHECK(progress_from_json(to_json(view)) == view);
  CHECK(progress_from_json(to_json(std::optional<ProgressView>())) == std::nullopt);
  auto slow = view;
  slow->slow_in = "data";
  CHECK(progress_from_json(to_json(slow)) == slow);
  nlohmann::json of_older = to_json(view);
  of_older.erase("slow_in");
  CHECK(progress_from_json(of_older) == view);
  CHECK(progress_from_json(to_json(std::optional(ProgressView()))) == ProgressView());
}

TEST_CASE("progress_view: a loss that JSON has no number for is a text", "[control]") {
  const auto sent = [](double loss) { return to_json(std::optional(ProgressView{.loss = loss})); };
  CHECK(sent(std::nan(""))["loss"] == "nan");
  CHECK(std::isnan(*progress_from_json(sent(std::nan("")))->loss));
  CHECK(sent(-kInfinity)["loss"] == "-inf");
  CHECK(progress_from_json(sent(-kInfinity))->loss == -kInfinity);
  CHECK(progress_from_json(sent(kInfinity))->loss == kInfinity);
}

TEST_CASE("progress_view: whatever a worker calls a collective, it can be printed and sent", "[control]") {
  Progress progress = waiting();
  progress.collective = "\x1b[2Jx\xff";
  const std::string name = view_of(progress, 100s).collective;
  CHECK(name.find('\x1b') == std::string::npos);
  CHECK(is_utf8(name));
}

}  // namespace progress_view_test
