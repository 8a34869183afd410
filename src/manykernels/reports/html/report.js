"use strict";
(() => {
  // Rows of the table of kernels at first, more of them with each click, and rows in print.
  const [FIRST, STEP, PRINTED] = [25, 200, 25];

  // -- numbers, as the page writes them -------------------------------------------------------------------------
  const percent = (share) => {
    if (share === 0 || share === 1) return `${100 * share}%`;
    return share < 5e-4 ? "<0.1%" : `${(100 * share).toFixed(1)}%`;
  };
  const figure = (value) => {
    if (value === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(value)));
    if (size >= -4 && size < 4) return String(Number(value.toPrecision(4)));
    const [digits, power] = value.toExponential(3).split("e");
    return `${Number(digits)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  };

  const collator = new Intl.Collator("en");

  // -- heads that sort ------------------------------------------------------------------------------------------
  // `sort(column, ascending)` puts the rows in order; numbers start with the largest, text with A.
  const makeSortable = (table, sort) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const ascending = before ? before === "descending" : !head.classList.contains("number");
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(column, ascending);
      });
    });
    return heads;
  };
  // Numbers inside a text count as numbers: width=0.125 comes before width=0.5, and both before width=16.
  const known = new Map();
  const partsOf = (text) => {
    if (!known.has(text)) known.set(text, text.split(/(\d+(?:\.\d+)?(?:e[+-]?\d+)?)/));
    return known.get(text);
  };
  const compare = (a, b) => {
    if (typeof a === "number") return a - b;
    const [left, right] = [partsOf(a), partsOf(b)];
    for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
      const order = i % 2 ? Number(left[i]) - Number(right[i]) : collator.compare(left[i], right[i]);
      if (order) return order;
    }
    return left.length - right.length;
  };

  const sortRows = (table) => {
    const body = table.tBodies[0];
    const valueOf = (row, column) => {
      const cell = row.cells[column];
      return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
    };
    makeSortable(table, (column, ascending) => {
      const rows = [...body.rows].sort((a, b) => compare(valueOf(a, column), valueOf(b, column)));
      body.append(...(ascending ? rows : rows.reverse()));
    });
  };

  // -- the table of kernels -------------------------------------------------------------------------------------
  const kernels = () => {
    const data = JSON.parse(document.getElementById("kernel-data").textContent);
    const table = document.querySelector("table.kernels");
    const [filter, status, more] = ["kernel-filter", "kernel-status", "kernel-more"].map((id) =>
      document.getElementById(id)
    );
    const count = data.names.length;
    const searched = data.names.map((name, k) => `${name}\n${data.views[data.view[k]]}`.toLowerCase());
    let order = Array.from({ length: count }, (_, k) => k);
    let limit = FIRST;
    let printing = false;

    const valueOf = (key, k) => (key === "view" ? data.views[data.view[k]] : data[key][k]);
    const textOf = (key, k) => {
      const value = valueOf(key, k);
      if (typeof value === "string") return value;
      if (key === "used") return `${value} of ${data.folds}`;
      return key === "weight" ? figure(value) : percent(value);
    };
    const row = (k) => {
      const line = document.createElement("tr");
      data.columns.forEach((key, column) => {
        const cell = document.createElement(column === 0 ? "th" : "td");
        if (column === 0) cell.scope = "row";
        if (typeof valueOf(key, k) === "number") cell.className = "number";
        cell.textContent = textOf(key, k);
        if (column === 0) {
          // Long names break where their parameters begin.
          const parts = cell.textContent.split(/(?<=\w\()/).flatMap((part) => [document.createElement("wbr"), part]);
          cell.replaceChildren(...parts.slice(1));
        }
        line.append(cell);
      });
      return line;
    };
    const show = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = order.filter(
        (k) => words.every((word) => searched[k].includes(word)) && (!printing || data.share[k] || data.mean?.[k])
      );
      const shown = found.slice(0, limit);
      table.tBodies[0].replaceChildren(...shown.map(row));
      const number = (value) => value.toLocaleString("en-US");
      const left = data.total - count;
      status.textContent =
        `Showing ${number(shown.length)} of ${number(found.length)} kernel${found.length === 1 ? "" : "s"}` +
        (printing ? " with a positive weight" : "") +
        (words.length ? ` that match${found.length === 1 ? "es" : ""}, of ${number(data.total)} in all.` : ".") +
        (left ? ` ${number(left)} with smaller weights are left out of the table.` : "");
      more.hidden = shown.length === found.length;
    };

    const heads = makeSortable(table, (column, ascending) => {
      const key = data.columns[column];
      const direction = ascending ? 1 : -1;
      order.sort((a, b) => direction * compare(valueOf(key, a), valueOf(key, b)) || a - b);
      limit = FIRST;
      show();
    });
    heads[data.columns.indexOf("share")].setAttribute("aria-sort", "descending");
    filter.addEventListener("input", () => {
      limit = FIRST;
      show();
    });
    more.addEventListener("click", () => {
      limit += STEP;
      show();
    });
    let before = limit;
    window.addEventListener("beforeprint", () => {
      [before, limit, printing] = [limit, PRINTED, true];
      show();
    });
    window.addEventListener("afterprint", () => {
      [limit, printing] = [before, false];
      show();
    });
    document.querySelectorAll(".controls").forEach((part) => {
      part.hidden = false;
    });
    show();
  };

  document.querySelectorAll("table.sortable:not(.kernels)").forEach(sortRows);
  kernels();
})();
