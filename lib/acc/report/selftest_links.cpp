// SPDX-License-Identifier: Apache-2.0
#include "acc/report/selftest_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "acc/report/html_page.hpp"
#include "acc/report/html_text.hpp"
#include "acc/report/link_matrix.hpp"
#include "acc/report/matrix_chart.hpp"

namespace acc::launcher {
namespace {

using Link = SelftestResults::Link;

constexpr std::size_t kClasses = 7;

/// The unit of a matrix whose cells have only numbers.
struct Unit {
  double size = 1;
  const char* name = "";
};

Unit unit_of(const SelftestResults& results, LinkFigure figure) {
  const double median = median_figure(results.links, figure);
  if (figure == LinkFigure::latency) return median < 1e-3 ? Unit{1e-6, "µs"} : Unit{1e-3, "ms"};
  return median < 1e9 ? Unit{1e6, "MB/s"} : Unit{1e9, "GB/s"};
}

std::string number_text(double value) {
  return value < 999.5 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

std::string group_text(const RankGroup& group) {
  return group.first == group.last ? fmt::format("rank {}", group.first)
                                   : fmt::format("ranks {} to {}", group.first, group.last);
}

std::string class_name(std::size_t index) {
  return fmt::format("s{}", index);
}

std::string class_of(const LinkMatrix::Cell& cell, const std::vector<double>& bounds, LinkFigure figure) {
  if (cell.outliers == cell.links) return "slow";
  const auto bound = std::ranges::lower_bound(bounds, cost_of(*cell.value, figure));
  return class_name(static_cast<std::size_t>(bound - bounds.begin()));
}

std::string cell_title(const LinkMatrix& matrix, std::size_t row, std::size_t column, LinkFigure figure) {
  const LinkMatrix::Cell& cell = matrix.cell(row, column);
  const std::string ends = row == column
                               ? "within " + group_text(matrix.groups[row])
                               : group_text(matrix.groups[row]) + " – " + group_text(matrix.groups[column]);
  std::string title = fmt::format("{}: {}", ends, figure_text(*cell.value, figure));
  if (cell.outliers == 0) return title;
  return title + (cell.links == 1 ? ", an outlier"
                                  : fmt::format(", {} of {} pairs are outliers", cell.outliers, cell.links));
}

MatrixChart chart_of(const LinkMatrix& matrix, const std::vector<double>& bounds, const Unit& unit,
                     LinkFigure figure) {
  MatrixChart chart;
  const std::size_t size = matrix.groups.size();
  for (std::size_t row = 0; row < size; ++row) {
    chart.labels.push_back(fmt::to_string(matrix.groups[row].first));
    if (row > 0 && matrix.groups[row].host != matrix.groups[row - 1].host && !matrix.is_folded())
      chart.borders.push_back(row);
    for (std::size_t column = 0; column < size; ++column) {
      const LinkMatrix::Cell& cell = matrix.cell(row, column);
      MatrixCell& chart_cell = chart.cells.emplace_back();
      if (!cell.value) continue;
      chart_cell = {.style = class_of(cell, bounds, figure),
                    .text = number_text(*cell.value / unit.size),
                    .title = cell_title(matrix, row, column, figure),
                    .is_marked = cell.outliers > 0};
    }
  }
  return chart;
}

std::string class_text(std::size_t index, const std::vector<double>& bounds, LinkFigure figure) {
  const bool is_latency = figure == LinkFigure::latency;
  if (index == bounds.size()) return is_latency ? "longer" : "less";
  return (is_latency ? "up to " : "from ") + figure_text(cost_of(bounds[index], figure), figure);
}

// Of the classes that some cell has.
std::string legend_of(const MatrixChart& chart, const std::vector<double>& bounds, LinkFigure figure) {
  std::set<std::string> classes;
  for (const MatrixCell& cell : chart.cells)
    classes.insert(cell.is_marked && cell.style != "slow" ? "framed" : cell.style);
  std::string legend = "<ul class=\"legend\">";
  for (std::size_t i = 0; i < kClasses; ++i)
    if (classes.contains(class_name(i))) legend += legend_entry(class_name(i), class_text(i, bounds, figure));
  if (classes.contains("slow")) legend += legend_entry("slow", "outlier");
  if (classes.contains("framed")) legend += legend_entry("framed", "has outliers");
  return legend + "</ul>\n";
}

std::string matrix_figure(const SelftestResults& results, const std::vector<RankGroup>& groups,
                          LinkFigure figure) {
  const LinkMatrix matrix = link_matrix(results, groups, figure);
  const std::vector<double> bounds = class_bounds(matrix, figure, kClasses);
  const Unit unit = unit_of(results, figure);
  const MatrixChart chart = chart_of(matrix, bounds, unit, figure);
  return fmt::format(
      "<figure><figcaption>{} in {}</figcaption>\n{}{}</figure>\n",
      figure == LinkFigure::latency ? "latency, half of a round trip," : "bandwidth, of 1 MiB,", unit.name,
      matrix_svg(chart), legend_of(chart, bounds, figure));
}

// How many times worse than the median the worse figure of the link is.
double slowness(const Link& link, double latency, double bandwidth) {
  return std::max(link.latency_seconds / latency, bandwidth / link.bytes_per_second);
}

std::string end_text(const SelftestResults& results, int rank) {
  const std::string host = results.host(rank);
  return fmt::format("{}{}", rank, host.empty() ? "" : " on " + html_text(host));
}

std::string slowest_links(const SelftestResults& results) {
  constexpr std::size_t kMaxLinks = 10;
  const double latency = median_figure(results.links, LinkFigure::latency);
  const double bandwidth = median_figure(results.links, LinkFigure::bandwidth);
  std::vector<Link> links = results.links;
  const auto count = static_cast<std::ptrdiff_t>(std::min(links.size(), kMaxLinks));
  std::ranges::partial_sort(links, links.begin() + count, std::ranges::greater(), [&](const Link& link) {
    return std::pair(link.latency_outlier || link.bandwidth_outlier, slowness(link, latency, bandwidth));
  });
  std::string rows;
  for (auto link = links.begin(); link != links.begin() + count; ++link)
    fmt::format_to(std::back_inserter(rows), "<tr><td>{}</td><td>{}</td>{}{}</tr>\n",
                   end_text(results, link->first), end_text(results, link->second),
                   number_cell(duration_text(link->latency_seconds), link->latency_outlier),
                   number_cell(rate_text(link->bytes_per_second), link->bandwidth_outlier));
  return "<p>The slowest pairs:</p>\n<table>\n<tr><th>rank</th><th>and rank</th><th "
         "class=\"number\">latency</th><th "
         "class=\"number\">bandwidth</th></tr>\n" +
         rows + "</table>\n";
}

std::string matrix_text(const SelftestResults& results, const std::vector<RankGroup>& groups) {
  std::string text =
      "Each pair was measured while nothing else used its connection. The stronger the colour, the slower.";
  const LinkMatrix matrix = {.groups = groups};
  if (matrix.is_folded())
    text += fmt::format(
        " Each row and column has the ranks of {}, labelled by the first; a cell is the median of their "
        "pairs.",
        results.host(groups.front().last) != results.host(groups.front().last + 1)
            ? "a host"
            : "several ranks in a row");
  else if (std::set(results.hosts.begin(), results.hosts.end()).size() > 1)
    text += " Lines divide the hosts.";
  return text;
}

}  // namespace

std::string links_section(const SelftestResults& results) {
  if (results.links.empty()) return "";
  if (results.links.size() == 1) {
    const Link& link = results.links.front();
    return section_of("Links", fmt::format("<p>Ranks {} and {} reach each other in {}, with {}.</p>\n",
                                           link.first, link.second, duration_text(link.latency_seconds),
                                           rate_text(link.bytes_per_second)));
  }
  const std::vector<RankGroup> groups = rank_groups(results);
  return section_of("Links", "<p>" + matrix_text(results, groups) + "</p>\n<div class=\"matrices\">\n" +
                                 matrix_figure(results, groups, LinkFigure::latency) +
                                 matrix_figure(results, groups, LinkFigure::bandwidth) + "</div>\n" +
                                 slowest_links(results));
}

}  // namespace acc::launcher
