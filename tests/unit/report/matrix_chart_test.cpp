// SPDX-License-Identifier: Apache-2.0
#include "acc/report/matrix_chart.hpp"

#include "support/catch.hpp"
#include "support/count.hpp"

namespace matrix_chart_test {

using namespace acc::launcher;
using acc::test::count;

namespace {

MatrixChart chart_of(std::size_t size) {
  MatrixChart chart;
  for (std::size_t i = 0; i < size; ++i) chart.labels.push_back(std::to_string(i));
  chart.cells.assign(size * size, {.style = "s1", .text = "21", .title = "a<b"});
  return chart;
}

}  // namespace

TEST_CASE("matrix_chart: a rectangle for each cell that is there, with its escaped title", "[report]") {
  MatrixChart chart = chart_of(3);
  chart.cells[4] = {};
  const std::string svg = matrix_svg(chart);
  CHECK(count(svg, "<rect ") == 8);
  CHECK(count(svg, R"(<rect x="1" y="1")") == 0);
  CHECK(count(svg, "<title>a&lt;b</title>") == 8);
  CHECK(count(svg, R"(class="on-s1">21</text>)") == 8);
}

TEST_CASE("matrix_chart: marked cells have a frame, and borders a line in both directions", "[report]") {
  MatrixChart chart = chart_of(4);
  CHECK(count(matrix_svg(chart), "class=\"frame\"") == 0);
  chart.cells[1].is_marked = true;
  chart.borders = {2};
  const std::string svg = matrix_svg(chart);
  CHECK(count(svg, R"(<path class="frame" d="M1 0h1v1h-1z"/>)") == 1);
  CHECK(count(svg, R"(<path class="border" d="M0 2h4M2 0v4"/>)") == 1);
}

TEST_CASE("matrix_chart: a large matrix has no texts in its cells, and a label every few rows", "[report]") {
  const std::string svg = matrix_svg(chart_of(64));
  CHECK(count(svg, "class=\"on-s1\"") == 0);
  CHECK(count(svg, "class=\"row\"") == 16);
  CHECK(count(svg, ">60</text>") == 2);
}

}  // namespace matrix_chart_test
