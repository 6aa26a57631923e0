// SPDX-License-Identifier: Apache-2.0
#include "acc/report/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include "acc/base/text.hpp"
#include "acc/report/chart.hpp"
#include "acc/report/figures.hpp"
#include "acc/report/goodput.hpp"
#include "acc/report/gpu_totals.hpp"
#include "acc/report/heat_map.hpp"
#include "acc/report/html_page.hpp"
#include "acc/report/html_text.hpp"
#include "acc/report/job_sections.hpp"
#include "acc/report/series.hpp"

namespace acc::launcher {
namespace {

// Half of them for the first moments, half for the last ones.
constexpr std::size_t kMaxRows = 200;

/// A part of the time of a job: its class in the style, and its name.
struct ShareKind {
  double TimeShares::* share;
  const char* style;
  const char* name;
};

constexpr std::array<ShareKind, 10> kShares = {
    {{&TimeShares::counted, "counted", "steps that counted"},
     {&TimeShares::repeated, "repeated", "steps done again after a restart"},
     {&TimeShares::data, "data", "waiting for data"},
     {&TimeShares::saving, "saving", "saving"},
     {&TimeShares::evaluation, "evaluation", "evaluation"},
     {&TimeShares::waiting, "waiting", "waiting for nodes, hanging, suspended"},
     {&TimeShares::starting, "starting", "starting, until the first step has ended"},
     {&TimeShares::restarting, "restarting", "restarts, from the last step before to the first after"},
     {&TimeShares::ending, "ending", "after the last step"},
     {&TimeShares::unknown, "unknown", "not known: no rank said how far it was"}}};

std::string since_begin(const JobHistory& history, double time) {
  return duration_text(time - history.time.begin);
}

std::string header(const JobHistory& history) {
  const bool is_bad = history.exit_code.value_or(0) != 0;
  const char* const style = is_bad ? "bad" : history.exit_code ? "good" : "soft";
  int nodes = 0;
  for (const AttemptRecord& attempt : history.attempts) nodes = std::max(nodes, attempt.nodes);
  return fmt::format(
      "<header>\n<h1>{}</h1>\n<p class=\"outcome {}\">{}</p>\n<p class=\"soft\">{} on {} ({}), since {}; run "
      "{}</p>\n</header>\n",
      html_text(job_title(history)), style, html_text(outcome_text(history)),
      pluralize(static_cast<std::uint64_t>(world_size_of(history)), "rank"),
      pluralize(static_cast<std::uint64_t>(nodes), "node"), html_text(hosts_text(history)),
      date_text(history.time.begin), html_text(history.run_id));
}

std::string energy_card(const GpuTotals& totals) {
  if (!totals.joules) return "";
  return figure_card("Energy", energy_text(*totals.joules),
                     "of " + pluralize(static_cast<std::uint64_t>(totals.gpus), "GPU"));
}

std::string steps_card(const Goodput& goodput, bool is_known) {
  if (goodput.is_highest_step)
    return figure_card("Highest step", count_text(goodput.steps), "as the training counts");
  return figure_card("Steps", is_known ? count_text(goodput.steps) : "–",
                     goodput.repeated_is_known ? "each counted once" : "of all attempts, repeated ones too");
}

std::string figure_cards(const JobHistory& history, const Goodput& goodput) {
  const bool is_known = goodput.shares.counted + goodput.shares.data > 0 || goodput.steps > 0;
  return "<dl class=\"figures\">\n" +
         figure_card("Goodput", is_known ? percent_text(goodput.ratio()) : "–",
                     is_known ? "of all time in steps that counted" : "no rank said how far it was") +
         figure_card("Wall time", duration_text(history.time.length()), "from the first event to the last") +
         figure_card("Restarts", count_text(history.restarts),
                     pluralize(history.attempts.size(), "attempt") + " in all") +
         steps_card(goodput, is_known) + energy_card(gpu_totals(history)) + "</dl>\n";
}

std::string shares_section(const JobHistory& history, const Goodput& goodput) {
  std::vector<Bar> bars;
  std::string rows;
  const double total = goodput.shares.total();
  double begin = 0;
  for (const ShareKind& kind : kShares) {
    const double share = goodput.shares.*kind.share;
    if (share <= 0 || total <= 0) continue;
    const std::string text =
        fmt::format("{}: {}, {}", kind.name, duration_text(share), percent_text(share / total));
    bars.push_back({{begin, begin + share}, kind.style, text});
    begin += share;
    fmt::format_to(std::back_inserter(rows),
                   "<tr><td><span class=\"key {}\"></span>{}</td><td class=\"number\">{}</td><td "
                   "class=\"number\">{}</td></tr>\n",
                   kind.style, kind.name, duration_text(share), percent_text(share / total));
  }
  std::string text = "<figure>" + lane_svg({0, total}, bars) + "</figure>\n<table>\n" + rows + "</table>\n" +
                     "<p class=\"soft\">Goodput is the time in steps that counted, divided by the time from "
                     "the first event to the last. "
                     "A step lasts from the end of the one before; what it spent in data, saving and "
                     "evaluation is listed apart. In an "
                     "attempt the mean of its ranks is taken.";
  if (history.restarts > 0)
    text += goodput.repeated_is_known ? " Steps that an earlier attempt had ended already do not count."
                                      : " <strong>Which steps were repeated after a restart is not "
                                        "known</strong>, so all count: the program does not say "
                                        "its step over restarts (<code>acc.step(global_step=...)</code>).";
  return section_of("Where the time went", text + "</p>\n");
}

std::string attempt_title(const JobHistory& history, const AttemptRecord& attempt) {
  return fmt::format("attempt {}: {} to {}, {} on {}{}", attempt.number,
                     since_begin(history, attempt.time.begin), since_begin(history, attempt.time.end),
                     pluralize(static_cast<std::uint64_t>(attempt.world_size), "rank"),
                     pluralize(static_cast<std::uint64_t>(attempt.nodes), "node"),
                     attempt.problem.empty() ? "" : "; " + attempt.problem);
}

std::vector<Bar> attempt_bars(const JobHistory& history) {
  std::vector<Bar> bars;
  for (const AttemptRecord& attempt : history.attempts)
    bars.push_back(
        {attempt.time, attempt.problem.empty() ? "counted" : "restarting", attempt_title(history, attempt)});
  return bars;
}

// The times between two samples in which a rank was in the section, of all ranks together.
std::vector<Bar> section_bars(const JobHistory& history, Section section) {
  const auto index = static_cast<std::size_t>(section);
  std::vector<TimeSpan> spans;
  for (const AttemptRecord& attempt : history.attempts) {
    for (const auto& [rank, samples] : attempt.ranks) {
      RankSample previous = {.time = attempt.time.begin};
      for (const RankSample& sample : samples) {
        if (!sample.steps) continue;
        if (spent_between(previous, sample)[index] > 0) spans.push_back({previous.time, sample.time});
        previous = sample;
      }
    }
  }
  std::ranges::sort(spans, {}, &TimeSpan::begin);
  std::vector<Bar> bars;
  for (const TimeSpan& span : spans) {
    if (bars.empty() || span.begin > bars.back().time.end)
      bars.push_back({.time = span, .style = std::string(name_of(section))});
    bars.back().time.end = std::max(bars.back().time.end, span.end);
  }
  for (Bar& bar : bars)
    bar.title = fmt::format("{} between {} and {}", name_of(section), since_begin(history, bar.time.begin),
                            since_begin(history, bar.time.end));
  return bars;
}

std::vector<Bar> standstill_bars(const JobHistory& history) {
  std::vector<Bar> bars;
  for (const TimeSpan& span : history.standstills)
    bars.push_back(
        {span, "waiting",
         fmt::format("from {} for {}", since_begin(history, span.begin), duration_text(span.length()))});
  return bars;
}

std::vector<Bar> moment_bars(const JobHistory& history, Moment::Kind kind, const char* style) {
  std::vector<Bar> bars;
  for (const Moment& moment : history.moments) {
    if (moment.kind == kind)
      bars.push_back(
          {{moment.time, moment.time}, style, since_begin(history, moment.time) + ": " + moment.text});
  }
  return bars;
}

// More than `max_bars` cannot be told apart: of bars that follow each other, those that begin within the same
// small part of the time become one. Of attempts it looks like one that failed, if there is one.
std::vector<Bar> merge_bars(const JobHistory& history, const std::vector<Bar>& bars, std::size_t max_bars) {
  if (bars.size() <= max_bars) return bars;
  const double width = history.time.length() / static_cast<double>(max_bars);
  std::vector<Bar> merged;
  for (std::size_t first = 0; first < bars.size();) {
    Bar& bar = merged.emplace_back(bars[first]);
    std::size_t next = first + 1;
    for (; next < bars.size() && bars[next].time.begin <= bar.time.begin + width; ++next) {
      bar.time.end = std::max(bar.time.end, bars[next].time.end);
      if (bar.style == "counted") bar.style = bars[next].style;
    }
    if (next - first > 1)
      bar.title =
          fmt::format("{} between {} and {}; the first: {}", next - first,
                      since_begin(history, bar.time.begin), since_begin(history, bar.time.end), bar.title);
    first = next;
  }
  return merged;
}

std::string lane(const JobHistory& history, const char* name, const std::vector<Bar>& bars) {
  constexpr std::size_t kMaxBars = 1000;
  if (bars.empty()) return "";
  return fmt::format("<div><small>{}</small>{}</div>\n", name,
                     lane_svg(history.time, merge_bars(history, bars, kMaxBars)));
}

const char* name_of_kind(Moment::Kind kind) {
  constexpr std::array kNames = {"restart", "hang", "slow rank", "nodes", "signal", "state", "warning"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string moments_table(const JobHistory& history) {
  if (history.moments.empty()) return "";
  std::string rows;
  const std::size_t left_out = history.moments.size() > kMaxRows ? history.moments.size() - kMaxRows : 0;
  for (std::size_t i = 0; i < history.moments.size(); ++i) {
    if (left_out > 0 && i == kMaxRows / 2) {
      fmt::format_to(std::back_inserter(rows),
                     "<tr><td></td><td></td><td class=\"soft\">{} left out here</td></tr>\n", left_out);
      i += left_out;
    }
    const Moment& moment = history.moments[i];
    const bool names_host = history.hosts.size() > 1 && moment.kind != Moment::Kind::restart &&
                            moment.kind != Moment::Kind::straggler;
    fmt::format_to(std::back_inserter(rows),
                   "<tr><td class=\"number\">{}</td><td class=\"name\">{}</td><td>{}</td></tr>\n",
                   since_begin(history, moment.time), name_of_kind(moment.kind),
                   html_text(moment.text + (names_host ? " (" + moment.host + ")" : "")));
  }
  return "<table>\n<tr><th class=\"number\">after</th><th>what</th><th>details</th></tr>\n" + rows +
         "</table>\n";
}

std::string timeline_section(const JobHistory& history) {
  return section_of("What happened",
                    "<figure class=\"lanes\">\n" +
                        lane(history, R"(attempts (<span class="key restarting"></span>ended by a problem))",
                             attempt_bars(history)) +
                        lane(history, "saving", section_bars(history, Section::saving)) +
                        lane(history, "evaluation", section_bars(history, Section::evaluation)) +
                        lane(history, "hangs and suspensions", standstill_bars(history)) +
                        lane(history, "restarts", moment_bars(history, Moment::Kind::restart, "restarting")) +
                        lane(history, "nodes", moment_bars(history, Moment::Kind::nodes, "starting")) +
                        lane(history, "slow ranks", moment_bars(history, Moment::Kind::straggler, "data")) +
                        lane(history, "signals", moment_bars(history, Moment::Kind::signal, "repeated")) +
                        lane(history, "warnings", moment_bars(history, Moment::Kind::warning, "warning")) +
                        axis_svg(history.time) + "</figure>\n" + moments_table(history));
}

std::string row_name(const RankGrid::Row& row) {
  return row.first == row.last ? fmt::format("rank {}", row.first)
                               : fmt::format("ranks {} to {}", row.first, row.last);
}

std::span<const std::optional<float>> cells_of(const RankGrid& grid, std::size_t row) {
  return std::span(grid.cells).subspan(row * grid.columns, grid.columns);
}

/// A class of cells, and the highest value that has it.
struct HeatLevel {
  double max;
  const char* style;
};
using HeatLevels = std::array<HeatLevel, 8>;

/// Multiples of the median.
constexpr HeatLevels kStepLevels = {
    {{0.9, "t0"}, {1.05, "t1"}, {1.1, "t2"}, {1.25, "t3"}, {1.5, "t4"}, {2, "t5"}, {4, "t6"}, {1e300, "t7"}}};
/// Parts of the time.
constexpr HeatLevels kShareLevels = {{{0.01, "s0"},
                                      {0.05, "s1"},
                                      {0.1, "s2"},
                                      {0.2, "s3"},
                                      {0.35, "s4"},
                                      {0.5, "s5"},
                                      {0.75, "s6"},
                                      {1e300, "s7"}}};

std::vector<std::string> classes_of(const RankGrid& grid, const HeatLevels& levels, double unit) {
  std::vector<std::string> classes;
  for (const std::optional<float>& cell : grid.cells) {
    const double value = static_cast<double>(cell.value_or(0)) / unit;
    classes.emplace_back(
        cell ? std::ranges::find_if(levels, [&](const HeatLevel& level) { return value <= level.max; })->style
             : "");
  }
  return classes;
}

std::string heat_figure(const JobHistory& history, const RankGrid& grid, const HeatLevels& levels,
                        double unit, std::string (*text)(double), const std::string& caption) {
  std::vector<std::string> titles;
  for (std::size_t row = 0; row < grid.rows.size(); ++row)
    titles.push_back(
        fmt::format("{}: median {}", row_name(grid.rows[row]), text(median(cells_of(grid, row)))));
  return fmt::format(
      "<figure><div class=\"scroll\"><div>{}{}</div></div>\n<figcaption>{}</figcaption></figure>\n",
      heat_svg(grid.columns, titles, classes_of(grid, levels, unit)), axis_svg(history.time), caption);
}

std::string grid_text(const JobHistory& history, const RankGrid& grid) {
  return fmt::format("Each row is {}, from {} at the top to {}; each column is {}.",
                     grid.rows.front().first == grid.rows.front().last ? "a rank" : "several ranks",
                     row_name(grid.rows.front()), row_name(grid.rows.back()),
                     duration_text(history.time.length() / static_cast<double>(grid.columns)));
}

std::string step_legend(double median) {
  std::string legend = "<ul class=\"legend\">" + legend_entry("t0", "faster");
  for (std::size_t i = 1; i + 1 < kStepLevels.size(); ++i)
    legend +=
        legend_entry(kStepLevels.at(i).style, fmt::format("up to {:.4g} × ({})", kStepLevels.at(i).max,
                                                          duration_text(median * kStepLevels.at(i).max)));
  return legend + legend_entry("t7", "longer") + "</ul>";
}

std::string step_section(const JobHistory& history) {
  const RankGrid grid = step_time_grid(history);
  const double middle = median(grid.cells);
  if (middle <= 0) return "";
  return section_of(
      "Step time",
      fmt::format("<p>The median is {}; colours are multiples of it{}.</p>\n", duration_text(middle),
                  grid.rows.front().first == grid.rows.front().last ? "" : ", of the slowest rank of a row") +
          heat_figure(history, grid, kStepLevels, middle, duration_text,
                      grid_text(history, grid) + step_legend(middle)));
}

std::string share_legend() {
  std::string legend = "<ul class=\"legend\">";
  for (std::size_t i = 0; i + 1 < kShareLevels.size(); ++i)
    legend +=
        legend_entry(kShareLevels.at(i).style, fmt::format("up to {:.0f} %", kShareLevels.at(i).max * 100));
  return legend + legend_entry("s7", "more") + "</ul>";
}

// The sections in which a rank was for a hundredth of a column at least.
std::string sections_section(const JobHistory& history) {
  constexpr GridSize kSmall = {.max_rows = 128, .columns = 160};
  std::string figures;
  std::string caption;
  for (const Section section : kSections) {
    const RankGrid grid = section_grid(history, section, kSmall);
    const auto is_seen = [](const std::optional<float>& cell) {
      return cell.value_or(0) > kShareLevels[0].max;
    };
    if (!std::ranges::any_of(grid.cells, is_seen)) continue;
    if (caption.empty()) caption = grid_text(history, grid);
    figures +=
        heat_figure(history, grid, kShareLevels, 1, percent_text,
                    std::string(section == Section::other ? "outside of all sections" : name_of(section)));
  }
  if (figures.empty()) return "";
  return section_of("Sections",
                    "<p>The part of its time that each rank spent in a section. " + caption + "</p>\n" +
                        share_legend() + "<div class=\"charts\">\n" + figures + "</div>\n",
                    " class=\"long\"");
}

std::string series_figure(const JobHistory& history, const char* name, const Series& series,
                          bool with_highest, std::string (*text)(double)) {
  if (series.size() < 2) return "";
  Line mean;
  Line highest = {.style = "highest"};
  std::optional<double> bottom;
  std::optional<double> top;
  for (const SeriesPoint& point : series) {
    mean.points.emplace_back(point.time, point.mean);
    highest.points.emplace_back(point.time, point.highest);
    const double upper = with_highest ? point.highest : point.mean;
    if (std::isfinite(point.mean)) bottom = std::min(bottom.value_or(point.mean), point.mean);
    if (std::isfinite(upper)) top = std::max(top.value_or(upper), upper);
  }
  const std::string range = !top ? ""
                            : bottom.value_or(0) < 0
                                ? fmt::format("between {} and {}; ", text(*bottom), text(*top))
                                : fmt::format("at most {}; ", text(*top));
  const std::string caption = fmt::format("{}, {}at the end {}", name, range, text(series.back().mean));
  std::vector<Line> lines = {mean};
  if (with_highest) lines.insert(lines.begin(), highest);
  // Only what has values below zero does not begin there.
  const double lowest = std::min(bottom.value_or(0), 0.0);
  const double margin = (top.value_or(0) - lowest) * 0.05;
  return fmt::format("<figure>{}{}<figcaption>{}</figcaption></figure>\n",
                     line_svg(history.time, lowest, top.value_or(0) + margin, lines, caption),
                     axis_svg(history.time), caption);
}

std::string plain_text(double value) {
  return fmt::format("{:.4g}", value);
}

std::string series_section(const JobHistory& history) {
  const std::string charts =
      series_figure(history, "loss, mean of the ranks", loss_series(history), false, plain_text) +
      series_figure(history, "CPU cores of a rank", cpu_series(history), true, plain_text) +
      series_figure(history, "resident memory of a rank and its child processes, each with what they share",
                    memory_series(history), true, bytes_text);
  if (charts.empty()) return "";
  return section_of("Loss, CPU and memory", "<ul class=\"legend\">" +
                                                legend_entry("counted", "mean of the ranks") +
                                                legend_entry("data", "highest") +
                                                "</ul>\n<div class=\"charts\">\n" + charts + "</div>\n");
}

std::string watts_text(double watts) {
  return fmt::format("{:.4g} W", watts);
}

std::string use_text(double percent) {
  return percent_text(percent / 100);
}

std::string gpu_section(const JobHistory& history) {
  const std::string charts =
      series_figure(history, "use of a GPU", gpu_use_series(history), true, use_text) +
      series_figure(history, "memory of a GPU in use", gpu_memory_series(history), true, bytes_text) +
      series_figure(history, "power of a GPU", gpu_power_series(history), true, watts_text);
  if (charts.empty()) return "";
  return section_of("GPUs",
                    "<p>By all processes, whenever the progress of ranks was noted. Energy is counted "
                    "from the first of these moments to the last.</p>\n<ul class=\"legend\">" +
                        legend_entry("counted", "mean of the GPUs") + legend_entry("data", "highest") +
                        "</ul>\n<div class=\"charts\">\n" + charts + "</div>\n");
}

std::string notes_section(const JobHistory& history) {
  if (history.notes.empty()) return "";
  std::string text = "<ul>\n";
  for (const std::string& note : history.notes) text += "<li>" + html_text(note) + "</li>\n";
  return section_of("About these logs", text + "</ul>\n");
}

}  // namespace

std::string report_page(const JobHistory& history) {
  const Goodput goodput = goodput_of(history);
  return html_page(html_text(job_title(history)) + " – acc report",
                   header(history) + figure_cards(history, goodput) + shares_section(history, goodput) +
                       timeline_section(history) + step_section(history) + sections_section(history) +
                       series_section(history) + gpu_section(history) + failures_section(history) +
                       settings_section(history) + notes_section(history));
}

}  // namespace acc::launcher
