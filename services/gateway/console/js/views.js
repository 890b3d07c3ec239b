// @ts-check
// Named views: a person's own addresses of the list, kept in the browser; each is a link that can be shared.

import { dialog, field } from "./dialogs.js";
import { h, link, replace } from "./dom.js";

const KEY = "views";

function stored() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found)
      ? found.filter((one) => typeof one?.name === "string" && typeof one?.search === "string")
      : [];
  } catch {
    return [];
  }
}

export function savedViews() {
  const holder = h("span", { class: "views", "aria-label": "Saved views" });
  const draw = () => {
    const views = stored();
    const links = views.map((one) =>
      h(
        "span",
        { class: "view" },
        link(`/runs${one.search}`, one.name),
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            "aria-label": `Forget ${one.name}`,
            onclick: () => keep(stored().filter((other) => other.name !== one.name)),
          },
          "×",
        ),
      ),
    );
    replace(holder, links, h("button", { type: "button", class: "quiet", onclick: save }, "Save view"));
  };
  const keep = (views) => {
    localStorage.setItem(KEY, JSON.stringify(views.slice(-30)));
    draw();
  };
  const save = () =>
    dialog(
      "Save this view",
      "The address of this list gets a name, in this browser.",
      [field("name", "Name", { required: true, maxlength: "40" })],
      ({ name }) => {
        const query = new URLSearchParams(location.search);
        query.delete("project");
        keep([...stored().filter((one) => one.name !== name), { name, search: `?${query}` }]);
      },
    );
  draw();
  return holder;
}
