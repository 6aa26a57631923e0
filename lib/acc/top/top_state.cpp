// SPDX-License-Identifier: Apache-2.0
#include "acc/top/top_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

// Shorter waits are those of any step.
constexpr ProgressView::Seconds kLongWait{1};
constexpr std::array kOrders = {TopOrder::rank,  TopOrder::step,          TopOrder::steps_per_second,
                                TopOrder::data,  TopOrder::communication, TopOrder::cpu,
                                TopOrder::memory};

bool waits_long(const RankView& rank) {
  return rank.ended.empty() && rank.progress && !rank.progress->collective.empty() &&
         rank.progress->in_collective >= kLongWait;
}

// Those that are in no collective, of a job in which others have been waiting in one.
void mark_awaited(std::vector<TopRank>& ranks) {
  if (std::ranges::none_of(ranks, waits_long, &TopRank::view)) return;
  for (TopRank& rank : ranks) {
    const auto& progress = rank.view.progress;
    rank.is_awaited = rank.view.ended.empty() && progress && progress->collective.empty();
  }
}

// Those of this node, and then of the others.
std::vector<TopRank> ranks_of(const JobUsage& job) {
  std::vector<TopRank> ranks;
  for (std::size_t i = 0; i < job.job.ranks.size(); ++i)
    ranks.push_back({.view = job.job.ranks[i], .usage = job.ranks.at(i), .host = job.other_nodes.host});
  for (const NodeView& node : job.other_nodes.nodes) {
    for (std::size_t i = 0; i < node.ranks.size(); ++i) {
      TopRank& rank = ranks.emplace_back(
          TopRank{.view = node.ranks[i], .usage = node.usage.at(i), .host = node.host, .is_remote = true});
      rank.usage.state = shown_state(node, rank.usage);
    }
  }
  return ranks;
}

bool runs(const TopReading& reading, const std::string& job) {
  return std::ranges::any_of(reading.jobs, [&](const TopJob& one) { return one.job.id == job; });
}

void remove_last_character(std::string& text) {
  const auto continues = [&] { return (static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U; };
  while (text.size() > 1 && continues()) text.pop_back();
  if (!text.empty()) text.pop_back();
}

// What is absent is the least.
double value_of(const TopRank& rank, TopOrder order) {
  constexpr double kAbsent = std::numeric_limits<double>::lowest();
  switch (order) {
    case TopOrder::rank:
      return rank.view.rank;
    case TopOrder::step:
      return rank.view.progress ? static_cast<double>(rank.view.progress->steps) : kAbsent;
    case TopOrder::steps_per_second:
      return rank.rates.steps_per_second.value_or(kAbsent);
    case TopOrder::data:
      return rank.rates.data_share.value_or(kAbsent);
    case TopOrder::communication:
      return rank.rates.communication_share.value_or(kAbsent);
    case TopOrder::cpu:
      return rank.usage.cpu_percent.value_or(kAbsent);
    case TopOrder::memory:
      return static_cast<double>(rank.usage.memory_bytes);
  }
  return kAbsent;
}

}  // namespace

TopReading reading_of(const std::vector<JobUsage>& jobs, const std::vector<std::string>& silent,
                      const RateWindow& rates, std::chrono::system_clock::time_point now) {
  TopReading reading{.time = now};
  for (const JobUsage& usage : jobs) {
    TopJob& job = reading.jobs.emplace_back(TopJob{.job = usage.job});
    job.job.ranks.clear();
    job.ranks = ranks_of(usage);
    job.missing = lines_of_missing(usage.job, usage.other_nodes);
    for (TopRank& rank : job.ranks) rank.rates = rates.rates_of(usage.job.id, rank.view.rank);
    mark_awaited(job.ranks);
  }
  for (const std::string& id : silent)
    reading.jobs.push_back({.job = {.id = id, .started = now}, .is_silent = true});
  return reading;
}

std::string_view name_of(TopOrder order) {
  constexpr std::array<std::string_view, kOrders.size()> kNames = {"rank",          "step", "steps/s", "data",
                                                                   "communication", "CPU",  "memory"};
  return kNames.at(static_cast<std::size_t>(order));
}

void TopState::show(TopReading reading) {
  reading_ = std::move(reading);
  keep_selection();
  if (mode_ == Mode::confirm_stop && !runs(reading_, job_to_stop_)) mode_ = Mode::table;
}

void TopState::keep_selection() {
  const std::vector<TopLine> table = lines();
  const bool stays = std::ranges::any_of(table, [&](const TopLine& line) { return is_selected(line); });
  if (table.empty()) {
    selected_job_.clear();
    selected_rank_.reset();
  } else if (!stays) {
    select(table[std::min(selected_index_, table.size() - 1)]);
  }
  selected_index_ = selected();
}

void TopState::select(const TopLine& line) {
  selected_job_ = line.job->job.id;
  selected_rank_ = line.rank == nullptr ? std::nullopt : std::optional(line.rank->view.rank);
}

bool TopState::is_selected(const TopLine& line) const {
  return line.job->job.id == selected_job_ &&
         (line.rank == nullptr ? !selected_rank_ : selected_rank_ == line.rank->view.rank);
}

std::size_t TopState::selected() const {
  const std::vector<TopLine> table = lines();
  const auto line = std::ranges::find_if(table, [&](const TopLine& one) { return is_selected(one); });
  return line == table.end() ? 0 : static_cast<std::size_t>(line - table.begin());
}

bool TopState::is_folded(const TopJob& job) const {
  const auto choice = folded_.find(job.job.id);
  return choice == folded_.end() ? job.ranks.size() > kMaxUnfolded : choice->second;
}

bool TopState::matches(const TopJob& job, const TopRank& rank) const {
  if (filter_.empty()) return true;
  const std::string pattern = to_lower(filter_);
  std::string text = fmt::format("{} {} rank {} {} {}", job.job.id, join(job.job.command, " "),
                                 rank.view.rank, rank.host, rank.usage.state);
  if (rank.view.progress) text += " " + rank.view.progress->section + " " + rank.view.progress->collective;
  if (rank.view.progress && !rank.view.progress->slow_in.empty()) text += " slow";
  if (rank.is_awaited) text += " awaited";
  return to_lower(text).find(pattern) != std::string::npos;
}

std::vector<const TopRank*> TopState::sorted_ranks(const TopJob& job) const {
  std::vector<const TopRank*> ranks;
  for (const TopRank& rank : job.ranks) {
    if (matches(job, rank)) ranks.push_back(&rank);
  }
  // By rank the first is first, by all else the greatest.
  const bool rises = (order_ == TopOrder::rank) != is_reversed_;
  std::ranges::stable_sort(ranks, [&](const TopRank* a, const TopRank* b) {
    return rises ? value_of(*a, order_) < value_of(*b, order_) : value_of(*a, order_) > value_of(*b, order_);
  });
  return ranks;
}

std::vector<TopLine> TopState::lines() const {
  std::vector<TopLine> table;
  for (const TopJob& job : reading_.jobs) {
    const std::vector<const TopRank*> ranks = sorted_ranks(job);
    // A job without ranks has not started them yet, or does not answer.
    if (ranks.empty() && !job.ranks.empty()) continue;
    table.push_back({.job = &job});
    if (is_folded(job)) continue;
    for (const TopRank* rank : ranks) table.push_back({&job, rank});
  }
  return table;
}

std::optional<RankId> TopState::rank_of_past() const {
  if (!shows_past_ || !selected_rank_) return std::nullopt;
  return RankId{selected_job_, *selected_rank_};
}

void TopState::move(std::ptrdiff_t lines_down) {
  const std::vector<TopLine> table = lines();
  if (table.empty()) return;
  const auto last = static_cast<std::ptrdiff_t>(table.size()) - 1;
  const auto next = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(selected()) + lines_down, 0, last);
  select(table[static_cast<std::size_t>(next)]);
  selected_index_ = static_cast<std::size_t>(next);
}

void TopState::fold() {
  for (const TopJob& job : reading_.jobs) {
    if (job.job.id != selected_job_) continue;
    folded_[selected_job_] = !is_folded(job);
    selected_rank_.reset();
    keep_selection();
    return;
  }
}

const TopJob* TopState::find(const std::string& id) const {
  const auto job = std::ranges::find_if(reading_.jobs, [&](const TopJob& one) { return one.job.id == id; });
  return job == reading_.jobs.end() ? nullptr : &*job;
}

std::string TopState::scope_of_stop() const {
  const TopJob* job = find(job_to_stop_);
  if (job == nullptr || !job->job.has_other_nodes()) return job_to_stop_;
  if (job->job.stops_alone.empty()) return job_to_stop_ + " on all its nodes";
  return fmt::format("{} on this machine alone ({})", job_to_stop_, job->job.stops_alone);
}

const TopRank* TopState::selected_rank() const {
  for (const TopLine& line : lines()) {
    if (is_selected(line)) return line.rank;
  }
  return nullptr;
}

TopAction TopState::action(TopAction::Kind kind) const {
  TopAction request{.kind = kind, .job = selected_job_, .rank = selected_rank_};
  const TopRank* rank = selected_rank();
  if (rank != nullptr && rank->view.ended.empty()) request.pid = rank->view.pid;
  return request;
}

// What a rank has written, where it stands and its memory only its own machine knows.
std::optional<TopAction> TopState::act(const KeyPress& press) {
  const bool is_logs = press.key == Key::enter || press.text == "l";
  const bool is_stacks = press.text == "t";
  if (!is_logs && !is_stacks && press.text != "d") return std::nullopt;
  if (const TopRank* rank = selected_rank(); rank != nullptr && rank->is_remote) {
    notice_ = fmt::format("rank {} is on {}: acc top has its output, stacks and gdb there", rank->view.rank,
                          rank->host);
    return std::nullopt;
  }
  const TopJob* job = find(selected_job_);
  if (job != nullptr && job->is_silent) {
    notice_ = selected_job_ + " does not answer: its agent is suspended or stuck";
    return std::nullopt;
  }
  // A client of --hosts has no ranks of its own.
  if (job != nullptr && job->job.hosts > 0) {
    notice_ = selected_job_ + " runs on other hosts: acc top has its output and stacks there";
    return std::nullopt;
  }
  if (is_logs) return action(TopAction::Kind::logs);
  if (is_stacks) return action(TopAction::Kind::stacks);
  const TopAction debug = action(TopAction::Kind::debug);
  return debug.pid != 0 ? std::optional(debug) : std::nullopt;
}

std::optional<TopAction> TopState::press(const KeyPress& press, std::size_t page) {
  switch (mode_) {
    case Mode::table:
      return press_in_table(press, page);
    case Mode::filter:
      press_in_filter(press);
      return std::nullopt;
    case Mode::confirm_stop:
      mode_ = Mode::table;
      if (press.text == "y" || press.text == "Y")
        return TopAction{.kind = TopAction::Kind::stop, .job = job_to_stop_};
      return std::nullopt;
    case Mode::help:
      mode_ = Mode::table;
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<TopAction> TopState::press_in_table(const KeyPress& press, std::size_t page) {
  const auto lines_of_page = static_cast<std::ptrdiff_t>(std::max<std::size_t>(page, 2)) - 1;
  const std::ptrdiff_t max_move = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  const std::string& key = press.text;
  notice_.clear();
  if (press.key == Key::up || key == "k") move(-1);
  if (press.key == Key::down || key == "j") move(1);
  if (press.key == Key::page_up) move(-lines_of_page);
  if (press.key == Key::page_down) move(lines_of_page);
  if (press.key == Key::home || key == "g") move(-max_move);
  if (press.key == Key::end || key == "G") move(max_move);
  if (key == " ") fold();
  if (key == "s") order_ = kOrders.at((static_cast<std::size_t>(order_) + 1) % kOrders.size());
  if (key == "r") is_reversed_ = !is_reversed_;
  if (key == "?" || key == "h") mode_ = Mode::help;
  if (key == "/") mode_ = Mode::filter;
  if (press.key == Key::escape && !filter_.empty()) {
    filter_.clear();
    keep_selection();
  }
  if (key == "p") shows_past_ = !shows_past_;
  if (key == "q") return TopAction{};
  if (selected_job_.empty()) return std::nullopt;
  if (key == "x") {
    job_to_stop_ = selected_job_;
    mode_ = Mode::confirm_stop;
  }
  return act(press);
}

void TopState::press_in_filter(const KeyPress& press) {
  if (press.key == Key::text) filter_ += press.text;
  if (press.key == Key::backspace) remove_last_character(filter_);
  if (press.key == Key::erase_line || press.key == Key::erase_word || press.key == Key::escape)
    filter_.clear();
  if (press.key == Key::enter || press.key == Key::escape) mode_ = Mode::table;
  keep_selection();
}

}  // namespace acc::launcher
