// SPDX-License-Identifier: Apache-2.0
#include "acc/report/chart.hpp"

#include <limits>

#include "support/catch.hpp"

namespace chart_test {

using namespace acc::launcher;
using Catch::Contains;

TEST_CASE("chart: a bar is where its time is, as a part of the width, and says what it is", "[report]") {
  const std::string svg =
      lane_svg({100, 200}, {{{125, 150}, "saving", "a < b"}, {{200, 200}, "restart", "end"}});
  CHECK_THAT(
      svg, Contains(R"(<rect x="25.00%" width="24.90%" height="18" class="saving"><title>a &lt; b</title>)"));
  CHECK_THAT(svg, Contains(R"(<rect x="99.70%" width="0.30%")"));
}

TEST_CASE("chart: an axis has at most seven times, in units that people count in", "[report]") {
  CHECK_THAT(axis_svg({5, 5 + 3600}), Contains(">10 min<") && Contains(">1 h<"));
  CHECK_THAT(axis_svg({0, 10}), Contains(">2 s<"));
  CHECK_THAT(axis_svg({0, 86400 * 100.0}), Contains(">17 d<"));
  CHECK_THAT(axis_svg({5, 5}), Contains(">0 s<"));
}

TEST_CASE("chart: equal cells in a row are one line", "[report]") {
  const std::string svg = heat_svg(3, {"rank 0", "rank 1"}, {"a", "a", "b", "", "a", "a"});
  CHECK_THAT(svg, Contains(R"(<path class="a" d="M0 0.5h2M1 1.5h2"/>)"));
  CHECK_THAT(svg, Contains(R"(<path class="b" d="M2 0.5h1"/>)"));
  CHECK_THAT(svg, Contains("<title>rank 1</title>"));
}

TEST_CASE("chart: a line is drawn from the bottom", "[report]") {
  CHECK_THAT(line_svg({0, 10}, 0, 4, {{.style = "x", .points = {{0, 0}, {5, 1}, {10, 4}}}}, "loss"),
             Contains(R"(points="0.00,100.0 50.00,75.0 100.00,0.0 ")"));
}

TEST_CASE("chart: a line may be below zero, or flat", "[report]") {
  const Line line = {.style = "x", .points = {{0, -1}, {10, -3}}};
  CHECK_THAT(line_svg({0, 10}, -3, -1, {line}, "loss"), Contains(R"(points="0.00,0.0 100.00,100.0 ")"));
  CHECK_THAT(line_svg({0, 10}, -1, -1, {line}, "loss"), Contains(R"(points="0.00,100.0 100.00,100.0 ")"));
}

TEST_CASE("chart: a line is broken where a value is not finite", "[report]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Line line = {.style = "x", .points = {{0, 0}, {2, 4}, {4, nan}, {5, nan}, {6, 2}, {10, 4}}};
  CHECK_THAT(line_svg({0, 10}, 0, 4, {line}, "loss"),
             Contains(R"(<polyline class="x" points="0.00,100.0 20.00,0.0 "/>)"
                      R"(<polyline class="x" points="60.00,50.0 100.00,0.0 "/></svg>)"));
  const Line alone = {.style = "x", .points = {{0, nan}, {2, 4}, {4, nan}, {5, 4}}};
  CHECK_THAT(line_svg({0, 10}, 0, 4, {alone}, "loss"),
             Contains(R"(<polyline class="x" points="20.00,0.0 20.00,0.0 "/>)"
                      R"(<polyline class="x" points="50.00,0.0 50.00,0.0 "/></svg>)"));
}

}  // namespace chart_test
