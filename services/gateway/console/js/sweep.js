// @ts-check
// A list that is looked at again and again: whole at first, then a small page at a time, so that no look is heavy however
// long the list is; what has not changed is not sent again.

import { all, read } from "./api.js";

export class Sweep {
  service;
  method;
  request;
  items;
  key;
  size;
  found = new Map();
  seen = new Set();
  token = "";

  // items: the answer's field; key(item); size: how many in a look, so that it weighs less than 2 KB.
  constructor({ service, method, request = {}, items, key, size }) {
    Object.assign(this, { service, method, request, items, key, size });
  }

  get list() {
    return [...this.found.values()];
  }

  async load() {
    const listed = await all(this.service, this.method, this.request, this.items);
    this.found = new Map(listed.map((one) => [this.key(one), one]));
    this.begin();
  }

  begin() {
    this.token = "";
    this.seen = new Set();
  }

  // The next page; after the last one, whatever was on none of them is gone.
  async look() {
    const page = { "page.page_size": this.size, ...(this.token ? { "page.page_token": this.token } : {}) };
    try {
      const answer = await read(this.service, this.method, { ...this.request, ...page });
      for (const one of answer[this.items]) {
        this.found.set(this.key(one), one);
        this.seen.add(this.key(one));
      }
      this.token = answer.next_page_token;
    } catch (error) {
      this.begin();
      throw error;
    }
    if (this.token) return;
    for (const key of this.found.keys()) if (!this.seen.has(key)) this.found.delete(key);
    this.begin();
  }
}
