// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/rendezvous_state.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/formats/pickle_reader.hpp"
#include "acc/formats/pickle_writer.hpp"

namespace acc::launcher {
namespace {

using Type = PickleValue::Type;
using std::chrono::days;
using std::chrono::microseconds;
using std::chrono::sys_days;

constexpr std::size_t kMaxAddressBytes = 1024;
constexpr std::size_t kMaxStateBytes = std::size_t{1} << 21U;

constexpr std::string_view kModule = "torch.distributed.elastic.rendezvous.dynamic_rendezvous";
constexpr std::string_view kStateClass =
    "torch.distributed.elastic.rendezvous.dynamic_rendezvous._RendezvousState";
constexpr std::string_view kNodeClass = "torch.distributed.elastic.rendezvous.dynamic_rendezvous._NodeDesc";
constexpr std::string_view kTimeClass = "datetime.datetime";
constexpr std::string_view kZoneClass = "datetime.timezone";
constexpr std::string_view kDeltaClass = "datetime.timedelta";

constexpr std::size_t kTimeBytes = 10;
constexpr std::uint8_t kFoldBit = 0x80;

[[noreturn]] void refuse_state(const std::string& what) {
  throw Error({.kind = ErrorKind::rendezvous,
               .what = "the rendezvous state of this job cannot be read: " + what,
               .where = {},
               .hint = "a torchrun other than those of torch 2.4 to 2.15 may take part"});
}

// datetime's own packing: year, month (its first bit is `fold`), day, hour, minute, second, microseconds;
// big endian.
std::string pack(WallTime time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto year = static_cast<unsigned>(static_cast<int>(date.year()));
  const auto micro = static_cast<unsigned>(clock.subseconds().count());
  const std::array<unsigned, kTimeBytes> numbers = {year >> 8U,
                                                    year,
                                                    static_cast<unsigned>(date.month()),
                                                    static_cast<unsigned>(date.day()),
                                                    static_cast<unsigned>(clock.hours().count()),
                                                    static_cast<unsigned>(clock.minutes().count()),
                                                    static_cast<unsigned>(clock.seconds().count()),
                                                    micro >> 16U,
                                                    micro >> 8U,
                                                    micro};
  std::string bytes;
  for (const unsigned number : numbers) bytes += static_cast<char>(number & 0xffU);
  return bytes;
}

WallTime unpack(std::string_view bytes) {
  if (bytes.size() != kTimeBytes) refuse_state("a time is not packed in 10 bytes");
  const auto byte_at = [&](std::size_t i) {
    return static_cast<unsigned>(static_cast<std::uint8_t>(bytes[i]));
  };
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(byte_at(0) << 8U | byte_at(1))),
                                         std::chrono::month(byte_at(2) & ~unsigned{kFoldBit}),
                                         std::chrono::day(byte_at(3)));
  const unsigned micro = byte_at(7) << 16U | byte_at(8) << 8U | byte_at(9);
  if (!date.ok() || byte_at(4) > 23 || byte_at(5) > 59 || byte_at(6) > 59 || micro > 999'999)
    refuse_state("a time is out of range");
  return sys_days(date) + std::chrono::hours(byte_at(4)) + std::chrono::minutes(byte_at(5)) +
         std::chrono::seconds(byte_at(6)) + microseconds(micro);
}

// Makes the struct from pickle values.
class Decoder {
 public:
  RendezvousState decode(const PickleValue& value) {
    const auto members = members_of(value, kStateClass, kStateMembers);
    RendezvousState state;
    state.round = integer(*members[0]);
    state.complete = boolean(*members[1]);
    if (members[2]->type != Type::none) state.deadline = time(*members[2]);
    state.closed = boolean(*members[3]);
    for (const auto& [key, rank] : dict(*members[4])) state.participants[node(*key)] = integer(*rank);
    state.wait_list = nodes(*members[5]);
    state.redundancy_list = nodes(*members[6]);
    for (const auto& [key, heartbeat] : dict(*members[7]))
      state.last_heartbeats[node(*key)] = time(*heartbeat);
    state.times_have_zone = zone_;
    return state;
  }

 private:
  static constexpr std::array<std::string_view, 8> kStateMembers = {
      "round",        "complete",  "deadline",        "closed",
      "participants", "wait_list", "redundancy_list", "last_heartbeats"};
  static constexpr std::array<std::string_view, 3> kNodeMembers = {"addr", "pid", "local_id"};

  // The members in the order of `names`; throws if there are others, or one is missing.
  template <std::size_t Size>
  static std::array<const PickleValue*, Size> members_of(const PickleValue& object, std::string_view type,
                                                         const std::array<std::string_view, Size>& names) {
    if (object.type != Type::object || object.text != type) refuse_state("expected " + std::string(type));
    if (!object.arguments->items.empty()) refuse_state("unexpected arguments of " + std::string(type));
    std::array<const PickleValue*, Size> members = {};
    if (object.state != nullptr) {
      if (object.state->pairs.size() > Size) refuse_state("too many members of " + std::string(type));
      for (const auto& [key, value] : object.state->pairs) {
        const auto* name = std::ranges::find(names, key->text);
        if (key->type != Type::text || name == names.end()) {
          refuse_state("unknown member '" + key->text.substr(0, 100) + "' of " + std::string(type));
        }
        members.at(static_cast<std::size_t>(name - names.begin())) = value;
      }
    }
    for (std::size_t i = 0; i < Size; ++i) {
      if (members.at(i) == nullptr)
        refuse_state(std::string(type) + " without '" + std::string(names.at(i)) + "'");
    }
    return members;
  }

  static std::int64_t integer(const PickleValue& value) {
    if (value.type != Type::integer) refuse_state("expected a number");
    return value.integer;
  }

  static bool boolean(const PickleValue& value) {
    if (value.type != Type::boolean) refuse_state("expected true or false");
    return value.integer != 0;
  }

  static const PickleValue::Pairs& dict(const PickleValue& value) {
    if (value.type != Type::dict) refuse_state("expected a dict");
    return value.pairs;
  }

  RendezvousNode node(const PickleValue& value) {
    const auto members = members_of(value, kNodeClass, kNodeMembers);
    if (members[0]->type != Type::text || members[0]->text.size() > kMaxAddressBytes) {
      refuse_state("a node's address is not a string, or too long");
    }
    return {.addr = members[0]->text, .pid = integer(*members[1]), .local_id = integer(*members[2])};
  }

  std::set<RendezvousNode> nodes(const PickleValue& value) {
    if (value.type != Type::set) refuse_state("expected a set");
    std::set<RendezvousNode> result;
    for (const PickleValue* item : value.items) result.insert(node(*item));
    return result;
  }

  // The arguments of a call of `type`.
  static const std::vector<const PickleValue*>& call(const PickleValue& value, std::string_view type) {
    if (value.type != Type::object || value.text != type || value.state != nullptr) {
      refuse_state("expected " + std::string(type));
    }
    return value.arguments->items;
  }

  WallTime time(const PickleValue& value) {
    const auto& arguments = call(value, kTimeClass);
    const bool zone = arguments.size() == 2;
    if (arguments.empty() || arguments.size() > 2 || arguments.front()->type != Type::bytes) {
      refuse_state("unexpected arguments of a time");
    }
    if (zone) check_utc(*arguments.back());
    if (zone_.value_or(zone) != zone) refuse_state("times with and without a zone");
    zone_ = zone;
    return unpack(arguments.front()->text);
  }

  static void check_utc(const PickleValue& zone) {
    const auto& offset = call(zone, kZoneClass);
    if (offset.size() != 1) refuse_state("a time zone with a name");
    const auto& parts = call(*offset.front(), kDeltaClass);
    if (parts.size() != 3) refuse_state("unexpected arguments of a time zone");
    for (const PickleValue* part : parts) {
      if (integer(*part) != 0) refuse_state("a time that is not in UTC");
    }
  }

  std::optional<bool> zone_ = {};
};

// Pickles the struct. What occurs repeatedly is memoized.
class Encoder {
 public:
  explicit Encoder(const RendezvousState& state) : state_(state) {}

  std::string encode() {
    out_.class_name(kModule, "_RendezvousState");
    out_.empty_tuple();
    out_.new_object();
    out_.empty_dict();
    out_.mark();
    out_.text("round");
    out_.integer(state_.round);
    out_.text("complete");
    out_.boolean(state_.complete);
    out_.text("deadline");
    if (state_.deadline) {
      time(*state_.deadline);
    } else {
      out_.none();
    }
    out_.text("closed");
    out_.boolean(state_.closed);
    out_.text("participants");
    out_.empty_dict();
    out_.mark();
    for (const auto& [participant, rank] : state_.participants) {
      node(participant);
      out_.integer(rank);
    }
    out_.fill_dict();
    out_.text("wait_list");
    nodes(state_.wait_list);
    out_.text("redundancy_list");
    nodes(state_.redundancy_list);
    out_.text("last_heartbeats");
    out_.empty_dict();
    out_.mark();
    for (const auto& [participant, heartbeat] : state_.last_heartbeats) {
      node(participant);
      time(heartbeat);
    }
    out_.fill_dict();
    out_.fill_dict();
    out_.build();
    return out_.finish();
  }

 private:
  // Writes a value that was memoized before; returns false if there is none.
  bool get_memo(const std::optional<std::uint32_t>& number) {
    if (number) out_.get_memo(*number);
    return number.has_value();
  }

  void node(const RendezvousNode& value) {
    const auto [entry, is_new] = nodes_.try_emplace(value, 0U);
    if (!is_new) return out_.get_memo(entry->second);
    if (!get_memo(node_class_)) {
      out_.class_name(kModule, "_NodeDesc");
      node_class_ = out_.memoize();
    }
    out_.empty_tuple();
    out_.new_object();
    entry->second = out_.memoize();
    out_.empty_dict();
    out_.mark();
    out_.text("addr");
    out_.text(value.addr);
    out_.text("pid");
    out_.integer(value.pid);
    out_.text("local_id");
    out_.integer(value.local_id);
    out_.fill_dict();
    out_.build();
  }

  void nodes(const std::set<RendezvousNode>& set) {
    out_.empty_set();
    out_.mark();
    for (const RendezvousNode& member : set) node(member);
    out_.fill_set();
  }

  void time(WallTime value) {
    if (!get_memo(time_class_)) {
      out_.class_name("datetime", "datetime");
      time_class_ = out_.memoize();
    }
    out_.bytes(pack(value));
    if (state_.times_have_zone.value_or(true)) {
      if (!get_memo(utc_)) utc();
      out_.tuple(2);
    } else {
      out_.tuple(1);
    }
    out_.call();
  }

  void utc() {
    out_.class_name("datetime", "timezone");
    out_.class_name("datetime", "timedelta");
    for (int i = 0; i < 3; ++i) out_.integer(0);
    out_.tuple(3);
    out_.call();
    out_.tuple(1);
    out_.call();
    utc_ = out_.memoize();
  }

  const RendezvousState& state_;
  PickleWriter out_ = {};
  std::map<RendezvousNode, std::uint32_t> nodes_ = {};
  std::optional<std::uint32_t> node_class_ = {};
  std::optional<std::uint32_t> time_class_ = {};
  std::optional<std::uint32_t> utc_ = {};
};

}  // namespace

std::string to_string(const RendezvousNode& node) {
  return node.addr + "_" + std::to_string(node.pid) + "_" + std::to_string(node.local_id);
}

std::string to_pickle(const RendezvousState& state) {
  return Encoder(state).encode();
}

RendezvousState read_rendezvous_state(std::string_view pickle) try {
  if (pickle.size() > kMaxStateBytes) refuse_state("it has more than 2 MiB");
  PickleReader reader({kStateClass, kNodeClass, kTimeClass, kZoneClass, kDeltaClass});
  return Decoder().decode(reader.read(pickle));
} catch (const Error& error) {
  const Problem& problem = error.problems().front();
  if (!problem.hint.empty()) throw;
  refuse_state(problem.what);
}

}  // namespace acc::launcher
