// SPDX-License-Identifier: Apache-2.0
#include "acc/top/top_screen.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <ftxui/dom/elements.hpp>
#include <ftxui/screen/screen.hpp>
#include <ftxui/screen/string.hpp>
#include <map>
#include <utility>

#include "acc/base/printable.hpp"
#include "acc/base/short_size.hpp"
#include "acc/base/text.hpp"
#include "acc/top/rate_curve.hpp"

namespace acc::launcher {
namespace {

// The title, the names of the columns, and the keys.
constexpr std::size_t kLinesAroundTable = 3;
// Of the past of a rank: a title, and the curves.
constexpr std::size_t kLinesOfPast = 8;
constexpr std::string_view kNothing = "-";

std::string whole_or_nothing(const std::optional<double>& number) {
  return number ? fmt::format("{:.0f}", *number) : std::string(kNothing);
}

std::string percent_or_nothing(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}", *share * 100) : std::string(kNothing);
}

std::string short_rate(const std::optional<double>& rate) {
  if (!rate) return std::string(kNothing);
  return *rate == 0 || *rate >= 100 ? fmt::format("{:.0f}", *rate) : fmt::format("{:.3g}", *rate);
}

// First what makes the rank stand out.
std::string describe_section(const TopRank& rank) {
  if (!rank.view.ended.empty()) return rank.view.ended;
  if (!rank.view.progress) return std::string(kNothing);
  const ProgressView& progress = *rank.view.progress;
  const std::string text = section_text(progress);
  if (!progress.slow_in.empty()) return "slow in " + progress.slow_in + ": " + text;
  return rank.is_awaited ? "awaited: " + text : text;
}

std::string step_of(const TopRank& rank) {
  return rank.view.progress ? fmt::to_string(rank.view.progress->steps) : std::string(kNothing);
}

std::string loss_of(const TopRank& rank) {
  const bool has_loss = rank.view.progress && rank.view.progress->loss;
  return has_loss ? fmt::format("{:.4g}", *rank.view.progress->loss) : std::string(kNothing);
}

std::string memory_of(const TopRank& rank) {
  return rank.usage.processes == 0 ? std::string(kNothing) : short_size(rank.usage.memory_bytes);
}

// The mean use of its GPUs.
std::string gpu_use_of(const TopRank& rank) {
  double sum = 0;
  int count = 0;
  for (const RankGpu& gpu : rank.usage.gpus) {
    if (!gpu.use) continue;
    sum += *gpu.use;
    ++count;
  }
  return count == 0 ? std::string(kNothing) : fmt::format("{:.0f}", sum / count);
}

std::string gpu_memory_of(const TopRank& rank) {
  std::uint64_t bytes = 0;
  for (const RankGpu& gpu : rank.usage.gpus) bytes += gpu.memory_bytes;
  return rank.usage.gpus.empty() ? std::string(kNothing) : short_size(bytes);
}

std::string power_of(const TopRank& rank) {
  std::optional<double> watts;
  for (const RankGpu& gpu : rank.usage.gpus) {
    if (gpu.watts) watts = watts.value_or(0) + *gpu.watts;
  }
  return watts ? fmt::format("{:.0f} W", *watts) : std::string(kNothing);
}

std::string output_of(const TopRank& rank) {
  switch (rank.view.out.kind) {
    case StreamDestination::Kind::passed:
      return "passed on";
    case StreamDestination::Kind::discarded:
      return "discarded";
    case StreamDestination::Kind::memory:
      return "acc logs";
    case StreamDestination::Kind::file:
      return rank.view.out.file.string();
  }
  return {};
}

struct Column {
  std::string_view title;
  std::size_t width;
  bool is_number;
  std::string (*text)(const TopRank& rank);
  std::optional<TopOrder> order = {};
};

constexpr std::string_view kSection = "SECTION";

// The most important first; the last ones are left out where they do not fit.
std::vector<Column> all_columns(bool with_hosts, bool with_gpus) {
  std::vector<Column> columns = {
      {"RANK", 5, true, [](const TopRank& rank) { return fmt::to_string(rank.view.rank); }, TopOrder::rank},
      {"STATE", 8, false,
       [](const TopRank& rank) { return rank.view.ended.empty() ? rank.usage.state : std::string("ended"); }},
      {kSection, 19, false, describe_section},
      {"STEP", 7, true, step_of, TopOrder::step},
      {"STEP/S", 6, true, [](const TopRank& rank) { return short_rate(rank.rates.steps_per_second); },
       TopOrder::steps_per_second},
      {"DATA%", 5, true, [](const TopRank& rank) { return percent_or_nothing(rank.rates.data_share); },
       TopOrder::data},
      {"COMM%", 5, true,
       [](const TopRank& rank) { return percent_or_nothing(rank.rates.communication_share); },
       TopOrder::communication},
      {"CPU%", 5, true, [](const TopRank& rank) { return whole_or_nothing(rank.usage.cpu_percent); },
       TopOrder::cpu}};
  if (with_hosts)
    columns.insert(columns.begin() + 1, {"HOST", 10, false, [](const TopRank& rank) { return rank.host; }});
  if (with_gpus) {
    columns.push_back({"GPU%", 4, true, gpu_use_of});
    columns.push_back({"GPU MEM", 8, true, gpu_memory_of});
    columns.push_back({"POWER", 6, true, power_of});
  }
  columns.push_back({"MEMORY", 8, true, memory_of, TopOrder::memory});
  columns.push_back({"LOSS", 9, true, loss_of});
  columns.push_back({"UP", 6, true, [](const TopRank& rank) {
                       return rank.usage.processes == 0 ? std::string(kNothing)
                                                        : short_duration(rank.usage.uptime);
                     }});
  columns.push_back(
      {"THREADS", 7, true, [](const TopRank& rank) { return fmt::to_string(rank.usage.threads); }});
  columns.push_back({"PID", 7, true, [](const TopRank& rank) { return fmt::to_string(rank.view.pid); }});
  columns.push_back({"OUTPUT", 40, false, output_of});
  return columns;
}

bool has_any(const TopReading& reading, bool (*holds)(const TopRank& rank)) {
  return std::ranges::any_of(reading.jobs,
                             [&](const TopJob& job) { return std::ranges::any_of(job.ranks, holds); });
}

bool has_gpus(const TopReading& reading) {
  return has_any(reading, [](const TopRank& rank) { return !rank.usage.gpus.empty(); });
}

bool has_hosts(const TopReading& reading) {
  return has_any(reading, [](const TopRank& rank) { return rank.is_remote; });
}

// Those that fit, the section's as wide as what is left over allows.
std::vector<Column> fitting_columns(std::size_t width, const TopReading& reading) {
  constexpr std::size_t kMaxSection = 36;
  std::vector<Column> columns;
  std::size_t used_width = 1;
  for (const Column& column : all_columns(has_hosts(reading), has_gpus(reading))) {
    if (used_width + column.width > width) break;
    used_width += column.width + 1;
    columns.push_back(column);
  }
  const std::size_t spare_width = width > used_width ? width - used_width : 0;
  const auto section = std::ranges::find(columns, kSection, &Column::title);
  if (section != columns.end()) section->width = std::min(section->width + spare_width, kMaxSection);
  return columns;
}

std::string cell(const std::string& text, const Column& column) {
  const std::string visible_text = cut_characters(text, column.width);
  const auto visible_width = static_cast<std::size_t>(ftxui::string_width(visible_text));
  const std::string blanks(column.width > visible_width ? column.width - visible_width : 0, ' ');
  return column.is_number ? blanks + visible_text : visible_text + blanks;
}

std::string row(const std::vector<Column>& columns, const auto& text_of) {
  std::string line = " ";
  for (const Column& column : columns) line += cell(text_of(column), column) + " ";
  return line;
}

std::string title_of(const Column& column, const TopState& state) {
  const bool sorts =
      column.order == state.order() && (state.order() != TopOrder::rank || state.is_reversed());
  return std::string(column.title) + (sorts ? (state.is_reversed() ? "-" : "+") : "");
}

// `4 running, 1 sleeping`
std::string count_states(const TopJob& job) {
  std::map<std::string, int> counts;
  for (const TopRank& rank : job.ranks) ++counts[rank.usage.state];
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) parts.push_back(fmt::format("{} {}", count, state));
  return join(parts, ", ");
}

// `steps 800 to 812`; empty where no rank says.
std::string range_of_steps(const TopJob& job) {
  std::vector<std::int64_t> steps;
  for (const TopRank& rank : job.ranks) {
    if (rank.view.progress) steps.push_back(rank.view.progress->steps);
  }
  if (steps.empty()) return {};
  const auto [min, max] = std::ranges::minmax(steps);
  return min == max ? fmt::format("; step {}", min) : fmt::format("; steps {} to {}", min, max);
}

std::string standing_out(const TopJob& job) {
  std::vector<int> slow;
  std::vector<int> awaited;
  for (const TopRank& rank : job.ranks) {
    if (rank.is_awaited) awaited.push_back(rank.view.rank);
    if (rank.view.progress && !rank.view.progress->slow_in.empty()) slow.push_back(rank.view.rank);
  }
  std::string text;
  if (!slow.empty()) text += "; slow: " + name_ranks(slow);
  if (!awaited.empty()) text += "; awaited: " + name_ranks(awaited);
  return text;
}

std::string job_text(const TopJob& entry, bool is_folded, std::chrono::system_clock::time_point now) {
  const JobView& job = entry.job;
  if (entry.is_silent) return fmt::format("? {}  does not answer", job.id);
  const auto uptime = std::chrono::duration_cast<std::chrono::milliseconds>(now - job.started);
  std::string text = fmt::format("{} {}  up {}", is_folded ? "+" : "-", job.id, short_duration(uptime));
  if (job.max_restarts > 0) text += fmt::format("  restarts {} of {}", job.attempt, job.max_restarts);
  if (!job.rendezvous.empty()) text += "  node " + job.rendezvous;
  if (job.hosts > 0) text += "  on " + pluralize(static_cast<std::uint64_t>(job.hosts), "host");
  if (job.importing) text += "  " + to_string(*job.importing);
  if (!entry.missing.empty()) text += "  [" + join(entry.missing, "; ") + "]";
  if (is_folded)
    return text + fmt::format("  {}: {}{}{}", pluralize(entry.ranks.size(), "rank"), count_states(entry),
                              range_of_steps(entry), standing_out(entry));
  return text + "  " + join(job.command, " ");
}

// The table keeps as many lines.
constexpr std::size_t kLinesForPast = kLinesAroundTable + 2 * kLinesOfPast;

constexpr std::size_t kColumnsForPast = 40;

bool has_room_for_past(std::size_t rows) {
  return rows >= kLinesForPast;
}

using ftxui::Element;

class Painter {
 public:
  Painter(const TopState& state, const TopStyle& style)
      : state_(state), style_(style), columns_(fitting_columns(style.columns, state.reading())) {}

  Element screen() const {
    std::vector<Element> lines = {title(), table_head()};
    std::vector<Element> body = state_.mode() == TopState::Mode::help ? help() : table();
    body.resize(table_lines(style_.rows, shows_past()), ftxui::text(""));
    std::ranges::move(body, std::back_inserter(lines));
    if (shows_past()) lines.push_back(past());
    lines.push_back(foot());
    return ftxui::vbox(std::move(lines));
  }

 private:
  static Element text(const std::string& content) { return ftxui::text(printable_line(content)); }

  Element colored(Element element, ftxui::Color color) const {
    return style_.color ? std::move(element) | ftxui::color(color) : std::move(element);
  }

  Element title() const {
    const TopReading& reading = state_.reading();
    std::size_t ranks = 0;
    for (const TopJob& job : reading.jobs) ranks += job.ranks.size();
    std::string line = fmt::format(" acc top  {}  {}, {}", style_.host, pluralize(reading.jobs.size(), "job"),
                                   pluralize(ranks, "rank"));
    if (!state_.filter().empty() || state_.mode() == TopState::Mode::filter)
      line += "  filter: " + state_.filter() + (state_.mode() == TopState::Mode::filter ? "_" : "");
    const std::time_t seconds = std::chrono::system_clock::to_time_t(reading.time);
    std::tm local = {};
    ::localtime_r(&seconds, &local);
    return ftxui::hbox(
        {text(line) | ftxui::bold, ftxui::filler(), ftxui::text(fmt::format("{:%H:%M:%S} ", local))});
  }

  Element table_head() const {
    const std::string names = row(columns_, [&](const Column& column) { return title_of(column, state_); });
    return text(names + std::string(style_.columns, ' ')) | ftxui::inverted;
  }

  std::vector<Element> table() const {
    const std::vector<TopLine> lines = state_.lines();
    if (lines.empty()) return {ftxui::text(""), text(empty_text())};
    const std::size_t height = table_lines(style_.rows, shows_past());
    const std::size_t selected = state_.selected();
    // The selected line in the middle, without empty lines at the end.
    const std::size_t last_start = lines.size() > height ? lines.size() - height : 0;
    const std::size_t start = std::min(selected > height / 2 ? selected - height / 2 : 0, last_start);
    std::vector<Element> elements;
    for (std::size_t i = start; i < std::min(lines.size(), start + height); ++i)
      elements.push_back(line(lines[i], i == selected));
    return elements;
  }

  std::string empty_text() const {
    return state_.reading().jobs.empty()
               ? " no job of yours is running on this machine; those that start will be here"
               : " no rank matches the filter; Esc shows all";
  }

  Element line(const TopLine& line, bool is_selected) const {
    Element element = line.rank == nullptr ? job_line(*line.job) : rank_line(*line.rank);
    return is_selected ? std::move(element) | ftxui::inverted : std::move(element);
  }

  Element job_line(const TopJob& job) const {
    const std::string line = " " + job_text(job, state_.is_folded(job), state_.reading().time);
    return text(line + std::string(style_.columns, ' ')) | ftxui::bold;
  }

  Element rank_line(const TopRank& rank) const {
    Element element = text(row(columns_, [&](const Column& column) { return column.text(rank); }) +
                           std::string(style_.columns, ' '));
    const bool is_slow = rank.view.progress && !rank.view.progress->slow_in.empty();
    if (is_slow || rank.is_awaited) return colored(std::move(element) | ftxui::bold, ftxui::Color::Yellow);
    if (!rank.view.ended.empty() && rank.view.ended != "exit code 0")
      return colored(std::move(element), ftxui::Color::Red);
    return rank.view.ended.empty() ? std::move(element) : std::move(element) | ftxui::dim;
  }

  static std::vector<Element> help() {
    constexpr std::array<std::string_view, 18> kLines = {
        "",
        " Up, Down, j, k       select a job or a rank",
        " PgUp, PgDn, g, G     by a page; to the first, to the last",
        " Enter, l             the output of the selected rank, or of all, as it comes",
        " t                    where the ranks stand, with their stacks",
        " d                    gdb on the selected rank; l, t and d are for ranks of this machine",
        " x                    stop the job; asks first",
        " Space                fold or unfold a job",
        " s, r                 sort by the next column; reverse the order",
        " p                    steps a second of the selected rank: ten minutes, a day",
        " /, Esc               show only what contains a text, such as slow; show all",
        " q, Ctrl-C            end",
        "",
        " SECTION        what a rank is doing; the name of a collective that it waits in",
        " slow           its steps take longer, and the others wait for it",
        " awaited        others have been in a collective for a second, this rank is not",
        " STEP/S         steps in a second",
        " DATA%, COMM%   of the last seconds, spent in data and in communication"};
    std::vector<Element> lines;
    for (const std::string_view line : kLines) lines.push_back(ftxui::text(std::string(line)));
    return lines;
  }

  bool shows_past() const {
    return state_.shows_past() && state_.mode() != TopState::Mode::help && has_room_for_past(style_.rows);
  }

  Element past() const {
    constexpr std::chrono::minutes kShort(10);
    constexpr std::chrono::hours kLong(24);
    const std::optional<RankId> rank = state_.rank_of_past();
    const std::optional<RankPast>& rank_past = state_.reading().past;
    if (!rank)
      return past_text("select a rank to see its steps a second over the last ten minutes and the last day");
    if (!rank_past || rank_past->rank != *rank)
      return past_text(fmt::format("rank {}: asking its job", rank->rank));
    if (!rank_past->history)
      return past_text(
          fmt::format("nothing is known of the past of rank {}: it has not ended a step, is on another "
                      "machine, or belongs to an older acc",
                      rank->rank));
    const StepHistory& history = *rank_past->history;
    return ftxui::hbox({curve(fmt::format("rank {}, 10 min", rank->rank), history.seconds, kShort),
                        ftxui::text(" "), curve("24 h", history.minutes, kLong)});
  }

  // As many lines as the curves have.
  Element past_text(const std::string& line) const {
    std::vector<Element> lines = {text(" " + line) | ftxui::dim};
    lines.resize(kLinesOfPast, ftxui::text(""));
    return ftxui::vbox(std::move(lines));
  }

  Element curve(const std::string& name, const std::vector<StepHistory::Sample>& samples,
                std::chrono::seconds span) const {
    const std::size_t width = std::max(style_.columns, kColumnsForPast) / 2 - 1;
    // A character has two columns of dots.
    const RateCurve rates = rate_curve(samples, span, 2 * width);
    const std::optional<double> highest = highest_of(rates);
    // The graph draws 0 as a line, as a rank that stands still; what is not known is below it, and blank.
    static constexpr int kBlank = -1;
    const auto dots = [rates, top = highest.value_or(0)](int columns, int lines) {
      std::vector<int> heights(static_cast<std::size_t>(columns), kBlank);
      for (std::size_t i = 0; i < std::min(heights.size(), rates.size()); ++i)
        if (rates[i]) heights[i] = top > 0 ? static_cast<int>(*rates[i] / top * lines) : 0;
      return heights;
    };
    const std::string title = fmt::format(
        " {}: {}", name, highest ? "at most " + short_rate(highest) + " steps/s" : "not known yet");
    return ftxui::vbox({text(title) | ftxui::bold,
                        colored(ftxui::graph(dots), ftxui::Color::Cyan) |
                            ftxui::size(ftxui::HEIGHT, ftxui::EQUAL, static_cast<int>(kLinesOfPast) - 1)}) |
           ftxui::size(ftxui::WIDTH, ftxui::EQUAL, static_cast<int>(width));
  }

  Element foot() const {
    if (state_.mode() == TopState::Mode::confirm_stop)
      return colored(
          text(fmt::format(" stop {}? y: yes, any other key: no", state_.scope_of_stop())) | ftxui::bold,
          ftxui::Color::Yellow);
    if (state_.mode() == TopState::Mode::filter) return text(" type a text; Enter keeps it, Esc shows all");
    if (state_.mode() == TopState::Mode::help) return text(" any key: back");
    if (!state_.notice().empty()) return text(" " + state_.notice()) | ftxui::bold;
    if (state_.shows_past() && !has_room_for_past(style_.rows))
      return text(fmt::format(" steps/s over time need a terminal of {} lines; p: back", kLinesForPast));
    return text(" Enter logs  t stacks  x stop  Space fold  s sort  / filter  ? help  q quit");
  }

  const TopState& state_;
  const TopStyle& style_;
  std::vector<Column> columns_;
};

ftxui::Screen render(const TopState& state, const TopStyle& style) {
  // Colors by their number in the terminal's palette.
  ftxui::Terminal::SetColorSupport(ftxui::Terminal::Color::Palette16);
  ftxui::Screen screen(static_cast<int>(style.columns), static_cast<int>(style.rows));
  ftxui::Render(screen, Painter(state, style).screen());
  return screen;
}

}  // namespace

std::size_t table_lines(std::size_t rows, bool shows_past) {
  const std::size_t other_lines =
      kLinesAroundTable + (shows_past && has_room_for_past(rows) ? kLinesOfPast : 0);
  return rows > other_lines ? rows - other_lines : 0;
}

std::string draw(const TopState& state, const TopStyle& style) {
  // As one update, for terminals that can do that.
  return "\x1b[?2026h\x1b[H" + render(state, style).ToString() + "\x1b[?2026l";
}

std::string draw_plain(const TopState& state, const TopStyle& style) {
  const ftxui::Screen screen = render(state, style);
  std::string text;
  for (int y = 0; y < screen.dimy(); ++y) {
    std::string line;
    for (int x = 0; x < screen.dimx(); ++x) line += screen.at(x, y);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace acc::launcher
