// SPDX-License-Identifier: Apache-2.0
#include "acc/report/link_matrix.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "acc/report/html_text.hpp"
#include "acc/report/log_scale.hpp"

namespace acc::launcher {
namespace {

template <class Joins>
std::vector<RankGroup> groups_where(const SelftestResults& results, Joins joins) {
  std::vector<RankGroup> groups;
  for (int rank = 0; rank < results.num_processes; ++rank) {
    if (groups.empty() || !joins(groups.back(), rank)) groups.push_back({rank, rank, results.host(rank)});
    groups.back().last = rank;
  }
  return groups;
}

std::size_t group_of(const std::vector<RankGroup>& groups, int rank) {
  const auto next_group = std::ranges::upper_bound(groups, rank, {}, &RankGroup::first);
  return static_cast<std::size_t>(next_group - groups.begin()) - 1;
}

// 0 without any.
double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::vector<RankGroup> rank_groups(const SelftestResults& results, std::size_t max_groups) {
  const auto ranks = static_cast<std::size_t>(std::max(results.num_processes, 0));
  if (ranks <= max_groups) return groups_where(results, [](const RankGroup&, int) { return false; });
  std::vector<RankGroup> hosts = groups_where(
      results, [&](const RankGroup& group, int rank) { return group.host == results.host(rank); });
  if (hosts.size() > 1 && hosts.size() <= max_groups) return hosts;
  const auto together = static_cast<int>((ranks + max_groups - 1) / max_groups);
  return groups_where(results, [&](const RankGroup&, int rank) { return rank % together != 0; });
}

double figure_of(const SelftestResults::Link& link, LinkFigure figure) {
  return figure == LinkFigure::latency ? link.latency_seconds : link.bytes_per_second;
}

bool is_outlier(const SelftestResults::Link& link, LinkFigure figure) {
  return figure == LinkFigure::latency ? link.latency_outlier : link.bandwidth_outlier;
}

std::string figure_text(double value, LinkFigure figure) {
  return figure == LinkFigure::latency ? duration_text(value) : rate_text(value);
}

double median_figure(const std::vector<SelftestResults::Link>& links, LinkFigure figure) {
  std::vector<double> values;
  for (const SelftestResults::Link& link : links) values.push_back(figure_of(link, figure));
  return median_of(std::move(values));
}

double cost_of(double value, LinkFigure figure) {
  return figure == LinkFigure::latency ? value : 1 / value;
}

bool LinkMatrix::is_folded() const {
  return std::ranges::any_of(groups, [](const RankGroup& group) { return group.first != group.last; });
}

LinkMatrix link_matrix(const SelftestResults& results, std::vector<RankGroup> groups, LinkFigure figure) {
  LinkMatrix matrix = {.groups = std::move(groups)};
  const std::size_t size = matrix.groups.size();
  matrix.cells.resize(size * size);
  std::vector<std::vector<double>> values(matrix.cells.size());
  for (const SelftestResults::Link& link : results.links) {
    if (link.second >= results.num_processes) continue;
    const std::size_t index =
        group_of(matrix.groups, link.first) * size + group_of(matrix.groups, link.second);
    values[index].push_back(figure_of(link, figure));
    matrix.cells[index].outliers += is_outlier(link, figure) ? 1 : 0;
  }
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t column = row; column < size; ++column) {
      const std::size_t index = row * size + column;
      LinkMatrix::Cell& cell = matrix.cells[index];
      cell.links = values[index].size();
      if (cell.links > 0) cell.value = median_of(std::move(values[index]));
      matrix.cells[column * size + row] = cell;
    }
  }
  return matrix;
}

std::vector<double> class_bounds(const LinkMatrix& matrix, LinkFigure figure, std::size_t count) {
  constexpr double kMinFactor = 1.1;
  double lowest = std::numeric_limits<double>::infinity();
  double highest = 0;
  for (const LinkMatrix::Cell& cell : matrix.cells) {
    if (!cell.value || cell.outliers > 0) continue;
    lowest = std::min(lowest, cost_of(*cell.value, figure));
    highest = std::max(highest, cost_of(*cell.value, figure));
  }
  if (highest <= 0) lowest = highest = 1;
  const double factor = std::max(root_of(highest / lowest, count), kMinFactor);
  std::vector<double> bounds;
  for (std::size_t i = 1; i < count; ++i) bounds.push_back(lowest * power_of(factor, i));
  return bounds;
}

}  // namespace acc::launcher
