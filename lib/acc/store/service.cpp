// SPDX-License-Identifier: Apache-2.0
#include "acc/store/service.hpp"

#include <algorithm>
#include <utility>

namespace acc {

bool Service::handle(ClientId client, Request request, Replies& replies) {
  end_turns(client, request.op == Op::queue_pop ? request.keys.front() : std::string());
  switch (request.op) {
    case Op::validate:
      return true;
    case Op::ping:
      replies.add_u32(static_cast<std::uint32_t>(request.number));
      return true;
    case Op::set:
    case Op::multi_set:
    case Op::append:
    case Op::add:
    case Op::compare_set:
    case Op::delete_key:
      return change(std::move(request), replies);
    case Op::get:
    case Op::multi_get:
    case Op::check:
    case Op::get_num_keys:
    case Op::list_keys:
      read(request, replies);
      return true;
    case Op::wait:
      handle_wait(client, std::move(request), replies);
      return true;
    case Op::barrier:
      return handle_barrier(client, request, replies);
    case Op::cancel_wait:
      waits_.cancel(client);
      replies.add_byte(kWaitCanceled);
      return true;
    case Op::queue_push:
    case Op::queue_pop:
    case Op::queue_len:
      handle_queue(std::move(request), replies);
      return true;
  }
  return false;
}

void Service::leave(ClientId client) {
  waits_.cancel(client);
  end_turns(client, {});
}

bool Service::change(Request request, Replies& replies) {
  if (request.keys.empty()) return true;  // a multi_set of nothing
  const std::string& key = request.keys.front();
  switch (request.op) {
    case Op::add: {
      const auto sum = data_.add(key, request.number);
      if (!sum) return false;
      replies.add_i64(*sum);
      written(key);
      return true;
    }
    case Op::compare_set: {
      const auto result = data_.compare_set(key, std::move(request.values[0]), std::move(request.values[1]));
      replies.add_value(result.now);
      if (result.stored) written(key);
      return true;
    }
    case Op::delete_key:
      replies.add_i64(data_.erase(key) ? 1 : 0);
      return true;
    case Op::append:
      data_.append(key, request.values.front());
      written(key);
      return true;
    default:  // set, and multi_set of any number
      for (std::size_t i = 0; i < request.keys.size(); ++i) {
        data_.set(request.keys[i], std::move(request.values[i]));
        written(request.keys[i]);
      }
      return true;
  }
}

void Service::read(const Request& request, Replies& replies) {
  switch (request.op) {
    case Op::check:
      replies.add_byte(all_exist(request.keys) ? kReady : kNotReady);
      return;
    case Op::get_num_keys:
      replies.add_i64(static_cast<std::int64_t>(data_.size()));
      return;
    case Op::list_keys:
      replies.add_i64(static_cast<std::int64_t>(data_.size()));
      for (const std::string_view key : data_.keys()) replies.add_text(key);
      return;
    default:  // get, and multi_get of any number
      for (const std::string& key : request.keys) replies.add_value(data_.get(key));
      return;
  }
}

void Service::handle_wait(ClientId client, Request request, Replies& replies) {
  std::erase_if(request.keys, [&](const std::string& key) { return data_.exists(key); });
  if (!request.keys.empty()) {
    waits_.wait(client, std::move(request.keys));
    return;
  }
  waits_.cancel(client);
  replies.add_byte(kStopWaiting);
}

bool Service::handle_barrier(ClientId client, const Request& request, Replies& replies) {
  const std::string& key = request.keys.front();
  const auto count = data_.add(key, 1);
  if (!count) return false;
  waits_.cancel(client);
  written(key);
  if (*count >= request.number) {
    replies.add_byte(kStopWaiting);
  } else {
    waits_.block(client, key, request.number);
  }
  return true;
}

void Service::handle_queue(Request request, Replies& replies) {
  const std::string& queue = request.keys.front();
  const auto length = static_cast<std::int64_t>(data_.queue_length(queue));
  if (request.op == Op::queue_push) {
    data_.push(queue, std::move(request.values.front()));
    waits_.pushed(queue);
    return;
  }
  replies.add_i64(length);
  if (request.op == Op::queue_len) return;
  if (length > 0) replies.add_value(data_.pop(queue));
}

bool Service::all_exist(const std::vector<std::string>& names) const {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return data_.exists(name); });
}

// `key` may have come to exist just now, or its counter may have grown.
void Service::written(const std::string& key) {
  waits_.appeared(key);
  if (!waits_.anyone_blocked(key)) return;
  if (const auto count = data_.number(key)) waits_.counted(key, *count);
}

// A client that was woken for a queue and asks for anything but `popped` has given its turn away.
void Service::end_turns(ClientId client, const std::string& popped) {
  for (const std::string& queue : waits_.end_turns(client)) {
    if (queue != popped && data_.queue_length(queue) > waits_.turns(queue)) waits_.pushed(queue);
  }
}

}  // namespace acc
