// SPDX-License-Identifier: Apache-2.0
#include "acc/store/service.hpp"

#include <algorithm>
#include <utility>

#include "acc/base/worker_env.hpp"

namespace acc::launcher {

Service::Outcome Service::carry_out(ClientId client, Writer writer, Work& work, Replies& replies,
                                    std::size_t max_keys) {
  Request& request = work.request;
  if (work.next_key == 0) {
    const Outcome begun = begin(client, writer, request, replies);
    if (begun != Outcome::more) return begun;
  }
  if (request.op == Op::list_keys) return list_keys(work, replies, max_keys);
  for (; work.next_key < request.keys.size(); ++work.next_key, --max_keys) {
    if (max_keys == 0) return Outcome::more;
    const Outcome outcome = handle_key(client, writer, work, replies);
    if (outcome != Outcome::more) return outcome;
  }
  finish(client, request.op, replies);
  return Outcome::done;
}

void Service::leave(ClientId client) {
  waits_.cancel(client);
  end_turns(client, {});
  const auto keys = at_end_.equal_range(client);
  for (auto key = keys.first; key != keys.second; ++key) set_at_end(key->second);
  at_end_.erase(keys.first, keys.second);
}

// Carries out requests of at most one key at once.
Service::Outcome Service::begin(ClientId client, Writer writer, Request& request, Replies& replies) {
  end_turns(client, request.op == Op::queue_pop ? request.keys.front() : std::string());
  switch (request.op) {
    case Op::validate:
      return Outcome::done;
    case Op::ping:
      replies.add_u32(static_cast<std::uint32_t>(request.number));
      return Outcome::done;
    case Op::set:
    case Op::append:
    case Op::add:
    case Op::compare_set:
    case Op::delete_key:
      return change(client, writer, request, replies);
    case Op::get:
      replies.add_value(data_.get(request.keys.front()));
      return Outcome::done;
    case Op::get_num_keys:
      replies.add_i64(static_cast<std::int64_t>(data_.size()));
      return Outcome::done;
    case Op::barrier:
      return handle_barrier(client, writer, request, replies);
    case Op::cancel_wait:
      waits_.cancel(client);
      replies.add_byte(kWaitCanceled);
      return Outcome::done;
    case Op::queue_push:
    case Op::queue_pop:
    case Op::queue_len:
      return handle_queue(writer, request, replies);
    case Op::wait:
      waits_.begin(client);
      return Outcome::more;
    case Op::multi_set:
    case Op::multi_get:
    case Op::check:
    case Op::list_keys:
      return Outcome::more;
  }
  return Outcome::refused;
}

// Returns `more` if the next key must be handled, too.
Service::Outcome Service::handle_key(ClientId client, Writer writer, Work& work, Replies& replies) {
  const std::string& key = work.request.keys[work.next_key];
  switch (work.request.op) {
    case Op::check:
      if (data_.exists(key)) return Outcome::more;
      replies.add_byte(kNotReady);
      return Outcome::done;
    case Op::wait:
      if (!data_.exists(key)) waits_.add(client, key);
      return Outcome::more;
    case Op::multi_get:
      replies.add_value(data_.get(key));
      return Outcome::more;
    default: {  // multi_set
      std::string& value = work.request.values[work.next_key];
      if (!may_write(writer, key, value.size())) return Outcome::refused;
      data_.set(key, std::move(value), writer);
      written(key);
      return Outcome::more;
    }
  }
}

void Service::finish(ClientId client, Op op, Replies& replies) {
  if (op == Op::check) replies.add_byte(kReady);
  if (op == Op::wait && waits_.all_added(client)) replies.add_byte(kStopWaiting);
}

Service::Outcome Service::change(ClientId client, Writer writer, Request& request, Replies& replies) {
  const std::string& key = request.keys.front();
  if (!may_write(writer, key, request.values.empty() ? 0 : request.values.back().size()))
    return Outcome::refused;
  switch (request.op) {
    case Op::add: {
      const auto sum = data_.add(key, request.number, writer);
      if (!sum) return Outcome::refused;
      replies.add_i64(*sum);
      break;
    }
    case Op::compare_set: {
      const auto result =
          data_.compare_set(key, std::move(request.values[0]), std::move(request.values[1]), writer);
      replies.add_value(result.now);
      if (!result.stored) return Outcome::done;
      break;
    }
    case Op::delete_key:
      replies.add_i64(data_.erase(key) ? 1 : 0);
      return Outcome::done;
    case Op::append:
      data_.append(key, request.values.front(), writer);
      break;
    default:
      data_.set(key, std::move(request.values.front()), writer);
      // Of members alone: they are as many as the job has processes.
      if (writer == Writer::member && key.find(kAtEnd) != std::string::npos) at_end_.emplace(client, key);
  }
  written(key);
  return Outcome::done;
}

Service::Outcome Service::handle_barrier(ClientId client, Writer writer, const Request& request,
                                         Replies& replies) {
  const std::string& key = request.keys.front();
  if (!may_write(writer, key, 0)) return Outcome::refused;
  const auto count = data_.add(key, 1, writer);
  if (!count) return Outcome::refused;
  waits_.cancel(client);
  written(key);
  if (*count >= request.number) {
    replies.add_byte(kStopWaiting);
  } else {
    waits_.block(client, key, request.number);
  }
  return Outcome::done;
}

Service::Outcome Service::handle_queue(Writer writer, Request& request, Replies& replies) {
  const std::string& queue = request.keys.front();
  if (request.op == Op::queue_push) {
    if (!may_write(writer, queue, request.values.front().size())) return Outcome::refused;
    data_.push(queue, std::move(request.values.front()), writer);
    waits_.pushed(queue);
    return Outcome::done;
  }
  const auto length = static_cast<std::int64_t>(data_.queue_length(queue));
  replies.add_i64(length);
  if (request.op == Op::queue_pop && length > 0) replies.add_value(data_.pop(queue));
  return Outcome::done;
}

// The number of keys comes first in the reply, so it is added at the end.
Service::Outcome Service::list_keys(Work& work, Replies& replies, std::size_t max_keys) const {
  const std::vector<std::string_view> keys = data_.keys_after(work.last_listed, max_keys);
  for (const std::string_view key : keys) work.listed.add_text(key);
  work.next_key += keys.size();
  if (keys.size() == max_keys) {
    work.last_listed = keys.back();
    return Outcome::more;
  }
  replies.add_i64(static_cast<std::int64_t>(work.next_key));
  replies.append(std::move(work.listed));
  return Outcome::done;
}

// Keys that the agent itself has set name the coordinator: no client may change them.
bool Service::may_write(Writer writer, std::string_view key, std::size_t value_bytes) const {
  if (writer == Writer::agent) return true;
  if (data_.is_agents(key)) return false;
  return writer != Writer::stranger ||
         data_.stranger_bytes() + KeyValue::cost(key, value_bytes) <= max_stranger_bytes_;
}

// `key` may be new, or its counter may have grown.
void Service::written(const std::string& key) {
  waits_.appeared(key);
  if (!waits_.anyone_blocked(key)) return;
  if (const auto count = data_.number(key)) waits_.counted(key, *count);
}

// Moves the value to the key without kAtEnd, unless that exists.
void Service::set_at_end(const std::string& key) {
  const KeyValue::Value value = data_.get(key);
  std::string target = key;
  target.erase(target.find(kAtEnd), kAtEnd.size());
  data_.erase(key);
  if (!value || data_.get(target)) return;
  data_.set(target, *value);
  written(target);
}

// A client that was woken for a queue, and then does not pop it, loses its turn.
void Service::end_turns(ClientId client, const std::string& popped) {
  for (const std::string& queue : waits_.end_turns(client)) {
    if (queue != popped && data_.queue_length(queue) > waits_.turns(queue)) waits_.pushed(queue);
  }
}

}  // namespace acc::launcher
