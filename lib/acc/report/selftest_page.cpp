// SPDX-License-Identifier: Apache-2.0
#include "acc/report/selftest_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "acc/base/text.hpp"
#include "acc/report/curve_chart.hpp"
#include "acc/report/figures.hpp"
#include "acc/report/html_page.hpp"
#include "acc/report/html_text.hpp"
#include "acc/report/job_sections.hpp"
#include "acc/report/link_matrix.hpp"
#include "acc/report/selftest_links.hpp"

namespace acc::launcher {
namespace {

using Link = SelftestResults::Link;
using AllReduce = SelftestResults::AllReduce;

constexpr std::size_t kMaxRankRows = 64;

std::size_t count_passed(const SelftestResults& results) {
  return static_cast<std::size_t>(
      std::ranges::count(results.checks, std::string(), &SelftestResults::Check::failure));
}

// The last line of the failed worker in which the test says why it ended, or nothing.
std::string reason_of(const FailureRecord& failure) {
  std::string reason;
  for (const std::string& line : split(failure.stderr_tail, '\n')) {
    for (const std::string_view prefix : {"acc-selftest: ", "acc test: ", "acc: "}) {
      if (line.starts_with(prefix)) reason = line.substr(prefix.size());
    }
  }
  if (reason.empty() || reason.starts_with("rank ")) return reason;
  return fmt::format("rank {} on {}: {}", failure.rank, failure.host, reason);
}

int num_processes(const SelftestRun& run) {
  return run.results.num_processes > 0 ? run.results.num_processes : world_size_of(run.history);
}

// All hosts, as far as they are known: the results name those of all nodes, the events those of this one.
std::set<std::string> hosts_of(const SelftestRun& run) {
  std::set<std::string> hosts(run.results.hosts.begin(), run.results.hosts.end());
  return hosts.empty() ? run.history.hosts : hosts;
}

std::size_t count_hosts(const SelftestRun& run) {
  std::size_t nodes = hosts_of(run).size();
  if (!run.results.hosts.empty()) return nodes;
  for (const AttemptRecord& attempt : run.history.attempts)
    nodes = std::max(nodes, static_cast<std::size_t>(attempt.nodes));
  return nodes;
}

std::string title_of(const SelftestRun& run) {
  const int processes = num_processes(run);
  if (processes == 0) return "acc test";
  const std::size_t hosts = count_hosts(run);
  return fmt::format("acc test: {}{}", pluralize(static_cast<std::uint64_t>(processes), "process"),
                     hosts == 0 ? "" : " on " + pluralize(hosts, "host"));
}

std::string test_header(const SelftestRun& run) {
  std::vector<std::string> facts = {hosts_text({.hosts = hosts_of(run)})};
  if (!run.results.device.empty()) facts.push_back("device " + run.results.device);
  if (!run.results.mixed_precision.empty()) facts.push_back("mixed precision " + run.results.mixed_precision);
  if (!run.version.empty()) facts.push_back(run.version);
  if (!run.results.torch.empty()) facts.push_back("torch " + run.results.torch);
  if (run.history.time.begin > 0) facts.push_back(date_text(run.history.time.begin));
  std::erase(facts, "");
  return fmt::format(
      "<header>\n<h1>{}</h1>\n<p class=\"outcome {}\">{}</p>\n<p class=\"soft\">{}</p>\n</header>\n",
      html_text(title_of(run)), run.exit_code == 0 ? "good" : "bad", html_text(verdict_of(run)),
      html_text(join(facts, "; ")));
}

std::string pair_text(const Link& link) {
  return fmt::format("ranks {} and {}", link.first, link.second);
}

std::string link_card(const SelftestResults& results, LinkFigure figure) {
  if (results.links.empty()) return "";
  const Link& slowest = *std::ranges::max_element(
      results.links, {}, [&](const Link& link) { return cost_of(figure_of(link, figure), figure); });
  const char* const name = figure == LinkFigure::latency ? "Latency" : "Bandwidth";
  if (results.links.size() == 1)
    return figure_card(name, figure_text(figure_of(slowest, figure), figure),
                       "between " + pair_text(slowest));
  return figure_card(
      name, figure_text(median_figure(results.links, figure), figure),
      fmt::format("median of {} pairs; the slowest: {}, {}", count_text(std::ssize(results.links)),
                  figure_text(figure_of(slowest, figure), figure), pair_text(slowest)));
}

// How fast the slowest rank copies; 0: it was not measured.
double memory_speed(const SelftestResults& results) {
  const auto slowest = std::ranges::min_element(results.copies, {}, &SelftestResults::Copy::bytes_per_second);
  return slowest == results.copies.end() ? 0 : slowest->bytes_per_second;
}

std::string all_reduce_card(const SelftestResults& results) {
  if (results.all_reduces.empty()) return "";
  const AllReduce& best =
      *std::ranges::max_element(results.all_reduces, {}, &AllReduce::bus_bytes_per_second);
  return figure_card("All-reduce", rate_text(best.bus_bytes_per_second),
                     "the highest bus bandwidth, with " + bytes_text(static_cast<double>(best.bytes)));
}

std::string outlier_card(const SelftestResults& results) {
  if (results.matmuls.empty()) return "";
  const auto pairs = std::ranges::count_if(
      results.links, [](const Link& link) { return link.latency_outlier || link.bandwidth_outlier; });
  std::set<int> ranks;
  for (const auto& one : results.matmuls)
    if (one.outlier) ranks.insert(one.rank);
  for (const auto& one : results.copies)
    if (one.outlier) ranks.insert(one.rank);
  const std::ptrdiff_t outliers = pairs + std::ssize(ranks);
  const bool has_any = outliers > 0;
  return figure_card(
      "Outliers", count_text(outliers),
      fmt::format("{}{}, {}", has_any ? "" : "of ",
                  pluralize(has_any ? ranks.size() : results.matmuls.size(), "rank"),
                  pluralize(has_any ? static_cast<std::size_t>(pairs) : results.links.size(), "pair")));
}

std::string test_cards(const SelftestResults& results) {
  if (results.checks.empty()) return "";
  double seconds = 0;
  for (const auto& check : results.checks) seconds += check.seconds;
  return "<dl class=\"figures\">\n" +
         figure_card("Checks", fmt::format("{} of {}", count_passed(results), results.checks.size()),
                     "passed, in " + duration_text(seconds)) +
         link_card(results, LinkFigure::latency) + link_card(results, LinkFigure::bandwidth) +
         all_reduce_card(results) + outlier_card(results) + "</dl>\n";
}

std::string outliers_section(const SelftestResults& results) {
  if (results.matmuls.empty()) return "";
  std::string text;
  if (results.outliers.empty()) text = "<p>No rank and no pair is much slower than the others.</p>\n";
  for (const std::string& line : results.outliers) text += "<li>" + html_text(line) + "</li>\n";
  if (!results.outliers.empty()) text = "<ul class=\"bad\">\n" + text + "</ul>\n";
  return section_of("Outliers", text +
                                    "<p class=\"soft\">Much slower means more than 1.5 times the median, for "
                                    "pairs within a host, which share "
                                    "caches and cores, more than 4 times; and more than five robust standard "
                                    "deviations above it. Pairs between "
                                    "hosts are compared with each other.</p>\n");
}

std::string all_reduce_title(const AllReduce& all_reduce) {
  return fmt::format("{}: {}, {}", bytes_text(static_cast<double>(all_reduce.bytes)),
                     duration_text(all_reduce.seconds), rate_text(all_reduce.bus_bytes_per_second));
}

std::string all_reduce_figure(const SelftestResults& results, const char* caption, double AllReduce::* figure,
                              std::string (*text)(double), std::vector<CurveChart::Level> levels) {
  CurveChart chart = {.levels = std::move(levels), .x_text = bytes_text, .y_text = text};
  CurveChart::Curve& curve = chart.curves.emplace_back();
  curve.style = "all-reduce";
  for (const AllReduce& all_reduce : results.all_reduces)
    curve.points.push_back(
        {static_cast<double>(all_reduce.bytes), all_reduce.*figure, all_reduce_title(all_reduce)});
  return fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n", caption, curve_svg(chart));
}

std::string all_reduce_table(const SelftestResults& results) {
  const double memory = memory_speed(results);
  std::string rows;
  for (const AllReduce& all_reduce : results.all_reduces)
    fmt::format_to(
        std::back_inserter(rows),
        "<tr><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td></tr>\n",
        bytes_text(static_cast<double>(all_reduce.bytes)), duration_text(all_reduce.seconds),
        rate_text(all_reduce.bus_bytes_per_second),
        memory > 0 ? percent_text(all_reduce.bus_bytes_per_second / memory) : "–");
  return "<table>\n<tr><th class=\"number\">size</th><th class=\"number\">time</th><th class=\"number\">bus "
         "bandwidth</th><th class=\"number\">of memory speed</th></tr>\n" +
         rows + "</table>\n";
}

std::string all_reduce_section(const SelftestResults& results) {
  if (results.all_reduces.empty()) return "";
  const double memory = memory_speed(results);
  std::vector<CurveChart::Level> levels;
  std::string legend = legend_entry("all-reduce", "all-reduce");
  if (memory > 0) {
    const std::string text = "memory: the slowest rank copies at " + rate_text(memory);
    levels.push_back({"memory", memory, text});
    legend += legend_entry("memory", text);
  }
  return section_of(
      "All-reduce",
      "<ul class=\"legend\">" + legend + "</ul>\n<div class=\"charts\">\n" +
          all_reduce_figure(results, "bus bandwidth", &AllReduce::bus_bytes_per_second, rate_text, levels) +
          all_reduce_figure(results, "time", &AllReduce::seconds, duration_text, {}) + "</div>\n" +
          all_reduce_table(results) +
          "<p class=\"soft\">The bus bandwidth is that of nccl-tests: 2(n − 1)/n times the size, divided by "
          "the time of the slowest rank. Memory speed is that of a copy on all ranks at the same time; each "
          "byte counts once.</p>\n");
}

std::string flops_text(double flops_per_second) {
  constexpr double kTera = 1e12;
  return flops_per_second < kTera ? fmt::format("{:.3g} GFLOP/s", flops_per_second / 1e9)
                                  : fmt::format("{:.3g} TFLOP/s", flops_per_second / kTera);
}

// Of many ranks those that are slowest to compute.
std::string ranks_section(const SelftestResults& results) {
  if (results.matmuls.empty()) return "";
  std::vector<SelftestResults::Matmul> matmuls = results.matmuls;
  const bool is_cut = matmuls.size() > kMaxRankRows;
  if (is_cut) std::ranges::sort(matmuls, std::ranges::greater(), &SelftestResults::Matmul::seconds);
  matmuls.resize(std::min(matmuls.size(), kMaxRankRows));
  std::string rows;
  for (const SelftestResults::Matmul& matmul : matmuls) {
    const auto copy = std::ranges::find(results.copies, matmul.rank, &SelftestResults::Copy::rank);
    const bool has_copy = copy != results.copies.end();
    fmt::format_to(
        std::back_inserter(rows),
        "<tr><td class=\"number\">{}</td><td>{}</td>{}<td class=\"number\">{}</td>{}</tr>\n", matmul.rank,
        html_text(results.host(matmul.rank)), number_cell(duration_text(matmul.seconds), matmul.outlier),
        flops_text(matmul.flops_per_second),
        number_cell(has_copy ? rate_text(copy->bytes_per_second) : "–", has_copy && copy->outlier));
  }
  const std::string note = is_cut ? fmt::format("The {} of {} ranks that are slowest to compute. ",
                                                matmuls.size(), results.matmuls.size())
                                  : "";
  return section_of("Ranks",
                    "<p>" + note +
                        "A matrix product and a copy in memory, on all ranks at the same time.</p>\n<table>\n"
                        "<tr><th class=\"number\">rank</th><th>host</th><th class=\"number\">product</th><th "
                        "class=\"number\">speed</th><th class=\"number\">copy</th></tr>\n" +
                        rows + "</table>\n",
                    " class=\"long\"");
}

std::string checks_section(const SelftestResults& results) {
  if (results.checks.empty()) return "";
  std::string rows;
  for (const SelftestResults::Check& check : results.checks)
    fmt::format_to(
        std::back_inserter(rows),
        "<tr><td class=\"name\">{}</td><td class=\"{}\">{}</td><td class=\"number\">{}</td></tr>\n",
        html_text(check.name), check.failure.empty() ? "good" : "bad",
        check.failure.empty() ? "ok" : "FAILED: " + html_text(check.failure), duration_text(check.seconds));
  return section_of(
      "Checks", "<table>\n<tr><th>check</th><th>result</th><th class=\"number\">slowest rank</th></tr>\n" +
                    rows + "</table>\n");
}

std::string not_tested_section(const SelftestResults& results) {
  if (results.not_tested.empty()) return "";
  return section_of("Not tested", "<p>" + html_text(results.not_tested) + "</p>\n");
}

}  // namespace

std::string verdict_of(const SelftestRun& run) {
  const SelftestResults& results = run.results;
  if (run.exit_code == 0)
    return fmt::format("Passed: {} of {}.", count_passed(results), pluralize(results.checks.size(), "check"));
  for (const SelftestResults::Check& check : results.checks) {
    if (!check.failure.empty()) return fmt::format("Failed: {}: {}", check.name, check.failure);
  }
  if (run.history.cause) {
    if (const std::string reason = reason_of(*run.history.cause); !reason.empty()) return "Failed: " + reason;
  }
  if (!results.error.empty()) return "Failed: " + results.error;
  if (results.checks.empty() && run.history.exit_code.value_or(0) == 0)
    return "Failed: the ranks ended without results.";
  return outcome_text(run.history);
}

std::string selftest_page(const SelftestRun& run) {
  const SelftestResults& results = run.results;
  return html_page(html_text(title_of(run)), test_header(run) + test_cards(results) +
                                                 failures_section(run.history) + outliers_section(results) +
                                                 links_section(results) + all_reduce_section(results) +
                                                 ranks_section(results) + checks_section(results) +
                                                 not_tested_section(results) + settings_section(run.history));
}

}  // namespace acc::launcher
