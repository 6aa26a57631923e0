// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/cli/terminal_keys.hpp"
#include "acc/control/job_table.hpp"
#include "acc/control/step_history.hpp"
#include "acc/top/step_rates.hpp"

namespace acc::launcher {

/// A rank as `acc top` shows it.
struct TopRank {
  RankView view = {};
  RankUsage usage = {};
  StepRates rates = {};
  /// The others have been waiting for it in a collective for a second or longer.
  bool is_awaited = false;
  /// Its machine, in a job of several nodes; and whether that is another one.
  std::string host = {};
  bool is_remote = false;
};

struct TopJob {
  /// Without its ranks.
  JobView job = {};
  /// Those of all nodes.
  std::vector<TopRank> ranks = {};
  /// As lines_of_missing().
  std::vector<std::string> missing = {};
  /// It does not answer: its id is all that is known of it.
  bool is_silent = false;
};

/// A rank of a job.
struct RankId {
  std::string job = {};
  int rank = 0;

  bool operator==(const RankId&) const = default;
};

/// The past of a rank that was asked for; absent where its job does not know it.
struct RankPast {
  RankId rank = {};
  std::optional<StepHistory> history = {};
};

/// The jobs of a machine at one moment.
struct TopReading {
  /// Those that do not answer are the last.
  std::vector<TopJob> jobs = {};
  std::chrono::system_clock::time_point time = {};
  std::optional<RankPast> past = {};
};

/// `silent`: ids of jobs that do not answer.
TopReading reading_of(const std::vector<JobUsage>& jobs, const std::vector<std::string>& silent,
                      const RateWindow& rates, std::chrono::system_clock::time_point now);

/// What the ranks of each job are sorted by.
enum class TopOrder { rank, step, steps_per_second, data, communication, cpu, memory };

/// `step`, `steps/s`, `data`, ...
std::string_view name_of(TopOrder order);

/// A line of the table: a job, or one of its ranks.
struct TopLine {
  const TopJob* job = nullptr;
  /// nullptr: the line of the job itself.
  const TopRank* rank = nullptr;
};

/// What the user asks for by a key.
struct TopAction {
  enum class Kind { quit, logs, stacks, stop, debug };
  Kind kind = Kind::quit;
  std::string job = {};
  /// Of `logs` and `debug`: the selected rank; absent: all.
  std::optional<int> rank = {};
  /// Of the selected rank; 0: there is none, or it has ended.
  pid_t pid = 0;

  bool operator==(const TopAction&) const = default;
};

/// The jobs and what the user has made of them: selection, order, filter, folded jobs. Pure.
class TopState {
 public:
  enum class Mode { table, filter, confirm_stop, help };

  /// Jobs with more ranks are folded until the user unfolds them.
  static constexpr std::size_t kMaxUnfolded = 64;

  /// `filter`: what the table begins with.
  explicit TopState(std::string filter = {}) : filter_(std::move(filter)) {}

  /// Shows another reading. The selection stays where it is if that is still there.
  void show(TopReading reading);

  /// Handles a key. `page`: how many lines the table has on the screen.
  std::optional<TopAction> press(const KeyPress& press, std::size_t page);

  /// The lines that the filter leaves, in order.
  std::vector<TopLine> lines() const;

  /// Index of the selected line; 0 if there is none.
  std::size_t selected() const;

  bool is_folded(const TopJob& job) const;

  /// Whether the past of the selected rank is shown below the table.
  bool shows_past() const { return shows_past_; }
  /// The rank whose past is to be read; absent: of none.
  std::optional<RankId> rank_of_past() const;

  const TopReading& reading() const { return reading_; }
  Mode mode() const { return mode_; }
  TopOrder order() const { return order_; }
  bool is_reversed() const { return is_reversed_; }
  const std::string& filter() const { return filter_; }
  /// What would be stopped, of Mode::confirm_stop: the job that was selected when that was asked for, as in
  /// `a on all its nodes`.
  std::string scope_of_stop() const;
  /// Why the last key did nothing; empty: it did.
  const std::string& notice() const { return notice_; }

 private:
  std::optional<TopAction> press_in_table(const KeyPress& press, std::size_t page);
  void press_in_filter(const KeyPress& press);
  void move(std::ptrdiff_t lines);
  void select(const TopLine& line);
  bool is_selected(const TopLine& line) const;
  void keep_selection();
  void fold();
  TopAction action(TopAction::Kind kind) const;
  std::optional<TopAction> act(const KeyPress& press);
  const TopRank* selected_rank() const;
  const TopJob* find(const std::string& id) const;
  bool matches(const TopJob& job, const TopRank& rank) const;
  std::vector<const TopRank*> sorted_ranks(const TopJob& job) const;

  TopReading reading_ = {};
  Mode mode_ = Mode::table;
  TopOrder order_ = TopOrder::rank;
  bool is_reversed_ = false;
  bool shows_past_ = false;
  std::string filter_;
  std::string selected_job_ = {};
  std::optional<int> selected_rank_ = {};
  std::string job_to_stop_ = {};
  std::string notice_ = {};
  /// Where the selection was, for when it goes.
  std::size_t selected_index_ = 0;
  /// What the user has asked for, by the job's id.
  std::map<std::string, bool> folded_ = {};
};

}  // namespace acc::launcher
