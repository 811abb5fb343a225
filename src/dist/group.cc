#include "dist/group.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace cgcn::dist {
namespace {

enum class Outcome : uint8_t { kDone, kFailed, kInterrupted };

// How work ended on a rank, as it is sent to the others.
struct Account {
  Outcome outcome = Outcome::kDone;
  std::string problem = {}, where = {}, hint = {};

  bool operator==(const Account&) const = default;
};

Account account_of(const std::exception_ptr& failure) {
  if (!failure) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return {Outcome::kFailed, error.problem(), error.where(), error.hint()};
  } catch (const Interrupted& stop) {
    return {.outcome = Outcome::kInterrupted, .problem = stop.what()};
  } catch (const std::bad_alloc&) {
    return {.outcome = Outcome::kFailed,
            .problem = "out of memory",
            .hint = "a smaller --memory, or fewer ranks on that machine"};
  } catch (const std::exception& bug) {
    return {.outcome = Outcome::kFailed, .problem = bug.what()};
  }
}

std::string pack(const Account& account) {
  std::string text(1, static_cast<char>(account.outcome));
  for (const std::string* field : {&account.problem, &account.where, &account.hint}) text += *field + '\0';
  return text;
}

Account unpack(const std::string& text) {
  Account account{.outcome = static_cast<Outcome>(text[0])};
  size_t at = 1;
  for (std::string* field : {&account.problem, &account.where, &account.hint}) {
    *field = text.c_str() + at;
    at += field->size() + 1;
  }
  return account;
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}
std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::span<std::byte> bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }

}  // namespace

Group::Group(const std::function<std::unique_ptr<Transport>()>& open, double peer_timeout, const std::string& host)
    : messenger_(std::make_unique<Messenger>(open, peer_timeout)), hosts_{host} {
  hosts_ = all_gather(host);
  messenger_->set_hosts(hosts_);
}

Group::~Group() = default;

Group& no_group() {
  static Group alone;
  return alone;
}

void Group::close() {
  if (!messenger_) return;
  barrier();
  messenger_.reset();
}

std::string Group::name(uint32_t rank) const { return fmt::format("rank {} on {}", rank, hosts_[rank]); }

uint32_t Group::ranks_on_this_host() const {
  return static_cast<uint32_t>(std::count(hosts_.begin(), hosts_.end(), hosts_[rank()]));
}

uint32_t Group::place_on_this_host() const {
  return static_cast<uint32_t>(std::count(hosts_.begin(), hosts_.begin() + rank(), hosts_[rank()]));
}

Group::Ticket Group::start(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) {
  if (!messenger_) return 0;
  for (const Outgoing& message : outgoing) traffic_.bytes_sent += message.bytes.size();
  traffic_.messages_sent += outgoing.size();
  return messenger_->start(outgoing, incoming);
}

void Group::wait(Ticket ticket) {
  if (!messenger_) return;
  const Timer timer;
  messenger_->wait(ticket);
  traffic_.moving += timer.seconds();
}

void Group::await_others(Ticket ticket) {
  const double moving = traffic_.moving;
  wait(ticket);
  traffic_.waiting += traffic_.moving - moving;
  traffic_.moving = moving;
}

void Group::exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) {
  wait(start(outgoing, incoming));
}

void Group::all_gather_bytes(std::span<std::byte> all, size_t each) {
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    outgoing.push_back({r, all.subspan(rank() * each, each)});
    incoming.push_back({r, all.subspan(r * each, each)});
  }
  await_others(start(outgoing, incoming));
}

std::vector<std::string> Group::all_to_all(const std::vector<std::string>& to) {
  CGCN_CHECK(to.size() == size());
  std::vector<uint64_t> lengths(size());
  for (uint32_t r = 0; r < size(); ++r) lengths[r] = to[r].size();
  std::vector<uint64_t> arriving(size());
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    outgoing.push_back({r, bytes_of(lengths[r])});
    incoming.push_back({r, bytes_of(arriving[r])});
  }
  exchange(outgoing, incoming);
  outgoing.clear();
  incoming.clear();
  std::vector<std::string> from(size());
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank()) {
      from[r] = to[r];
      continue;
    }
    from[r].resize(arriving[r]);
    outgoing.push_back({r, bytes_of(to[r])});
    incoming.push_back({r, bytes_of(from[r])});
  }
  exchange(outgoing, incoming);
  return from;
}

std::vector<std::string> Group::all_gather(const std::string& own) {
  return all_to_all(std::vector<std::string>(size(), own));
}

void Group::broadcast(std::span<std::byte> bytes) {
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  if (!is_first()) incoming.push_back({0, bytes});
  for (uint32_t r = 1; is_first() && r < size(); ++r) outgoing.push_back({r, bytes});
  exchange(outgoing, incoming);
}

std::string Group::broadcast(const std::string& text) {
  uint64_t length = text.size();
  broadcast(bytes_of(length));
  std::string result = is_first() ? text : std::string(length, '\0');
  broadcast(bytes_of(result));
  return result;
}

void Group::barrier() { all_gather_values(uint8_t{0}); }

void Group::agree(const std::exception_ptr& failure) {
  if (!messenger_) {
    if (failure) std::rethrow_exception(failure);
    return;
  }
  std::vector<Account> accounts;
  for (const std::string& text : all_gather(pack(account_of(failure)))) accounts.push_back(unpack(text));
  const auto is = [](Outcome outcome) { return [=](const Account& a) { return a.outcome == outcome; }; };
  const auto failed = std::find_if(accounts.begin(), accounts.end(), is(Outcome::kFailed));
  if (failed != accounts.end()) {
    const bool alike = std::all_of(accounts.begin(), accounts.end(), [&](const Account& a) { return a == *failed; });
    const auto rank = static_cast<uint32_t>(failed - accounts.begin());
    throw GroupError(alike ? failed->problem : fmt::format("{} ({})", failed->problem, name(rank)), failed->where,
                     failed->hint);
  }
  const auto stopped = std::find_if(accounts.begin(), accounts.end(), is(Outcome::kInterrupted));
  if (stopped != accounts.end()) throw GroupInterrupted(stopped->problem);
}

void Group::require_same(const std::string& what, const std::string& own, const std::string& hint) {
  const std::vector<std::string> values = all_gather(own);
  const auto other = std::find_if(values.begin(), values.end(), [&](const std::string& v) { return v != values[0]; });
  if (other == values.end()) return;
  std::vector<std::string> hosts;
  for (uint32_t r = 0; r < size(); ++r)
    if (values[r] != values[0] && std::find(hosts.begin(), hosts.end(), hosts_[r]) == hosts.end())
      hosts.push_back(hosts_[r]);
  throw GroupError(
      fmt::format(
          "{} differs: {} on {}, {} on {}{}", what, values[0], hosts_[0], *other, hosts[0],
          hosts.size() > 1 ? fmt::format(" (and others on {})", fmt::join(hosts.begin() + 1, hosts.end(), ", ")) : ""),
      {}, hint);
}

}  // namespace cgcn::dist
