// SPDX-License-Identifier: Apache-2.0
#include "acc/report/curve_chart.hpp"

#include "acc/report/html_text.hpp"
#include "support/catch.hpp"
#include "support/count.hpp"

namespace curve_chart_test {

using namespace acc::launcher;
using acc::test::count;

namespace {

CurveChart chart_of(std::vector<CurvePoint> points) {
  return {.curves = {{"all-reduce", std::move(points)}}, .x_text = bytes_text, .y_text = rate_text};
}

}  // namespace

TEST_CASE("curve_chart: both axes are logarithmic", "[report]") {
  const std::string svg =
      curve_svg(chart_of({{1024, 1e6, "a<b"}, {1 << 20, 1e7, "middle"}, {1 << 30, 1e8, "last"}}));
  CHECK(count(svg, R"(cx="50.00%" cy="100.0")") == 1);
  CHECK(count(svg, "<title>a&lt;b</title>") == 1);
  CHECK(count(svg, "0.00,100.00 50.00,50.00 100.00,0.00") == 1);
  for (const char* tick : {">1 MB/s<", ">10 MB/s<", ">100 MB/s<", ">1 KiB<", ">1 GiB<"}) {
    INFO(tick);
    CHECK(count(svg, tick) == 1);
  }
}

TEST_CASE("curve_chart: a level is a line across, which the axis includes", "[report]") {
  CurveChart chart = chart_of({{1024, 1e6, ""}, {2048, 1e7, ""}});
  chart.levels = {{"memory", 1e9, "memory"}};
  const std::string svg = curve_svg(chart);
  CHECK(count(svg, R"(<line class="level memory" x1="0" x2="100%" y1="0.0" y2="0.0">)") == 1);
  CHECK(count(svg, ">1 GB/s<") == 1);
}

TEST_CASE("curve_chart: an axis of less than three powers of ten has 2 and 5 times them", "[report]") {
  const std::string svg = curve_svg(chart_of({{1024, 1.5e6, ""}, {2048, 4e6, ""}}));
  CHECK(count(svg, ">2 MB/s<") == 1);
  CHECK(count(svg, ">5 MB/s<") == 1);
}

TEST_CASE("curve_chart: one point is a chart, none is not", "[report]") {
  CHECK(count(curve_svg(chart_of({{1024, 1e6, ""}})), "<circle") == 1);
  CHECK(curve_svg(chart_of({})).empty());
}

}  // namespace curve_chart_test
