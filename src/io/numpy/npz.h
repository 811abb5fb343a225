// NumPy's .npz: a zip file whose members are .npy arrays, stored or deflated, zip64 or not.
//
// Stored members are read where they lie. Deflated ones are inflated into a scratch file that has no name, so that a
// large array costs disk and not memory, and nothing is left behind whatever happens. Every size that the file declares
// is checked against the file before anything is allocated; every member's CRC is checked when it is opened.
#pragma once

#include <map>

#include "io/numpy/array.h"

namespace cgcn {

class NpzFile {
 public:
  // `scratch` is a folder on a disk with room for inflated members: the one that the store is being written into.
  NpzFile(const fs::path& path, const fs::path& scratch);
  NpzFile(SharedBytes bytes, std::string where, fs::path scratch);

  const std::string& where() const { return where_; }
  bool has(const std::string& name) const { return members_.contains(name); }  // without ".npy"
  std::vector<std::string> names() const;
  // Throw Error if there is no such member, or it is broken.
  SharedBytes member(const std::string& name) const;
  Array array(const std::string& name) const;

 private:
  struct Member {
    uint64_t offset, compressed, size;  // offset: of the data
    uint32_t crc;
    bool deflated;
  };
  void read_directory(uint64_t offset, uint64_t size, uint64_t count);
  void add_member(std::string name, uint64_t header_offset, Member member);
  SharedBytes inflate_member(const Member& member, const std::string& where) const;

  SharedBytes bytes_;
  std::string where_;
  fs::path scratch_;
  std::map<std::string, Member> members_;
};

// Whether a file is an .npz: by its first bytes, or by its name if those are of no kind that is known.
bool is_npz(const fs::path& path);

// An array in a file of its own: a .npy, or an .npz with one member.
// Error if it is neither or has several.
Array open_array(const fs::path& path, const fs::path& scratch);

// Those of `names` that are in `folder` with .npy or .npz, in this order.
std::vector<fs::path> find_arrays(const fs::path& folder, std::initializer_list<const char*> names);
// The first of them; empty if there is none.
fs::path find_array(const fs::path& folder, std::initializer_list<const char*> names);

}  // namespace cgcn
