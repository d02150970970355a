// Tabs of languages, which remember the chosen one on every page; and what mdBook's pages leave open. Without scripts
// the blocks follow each other.
(() => {
  const KEPT = "polyflake-language";
  const NAMES = {
    python: "Python",
    js: "JavaScript",
    ts: "TypeScript",
    rust: "Rust",
    go: "Go",
    php: "PHP",
    java: "Java",
    c: "C",
  };
  const HEADINGS = { "Node and browsers": "js", "C and C++": "c" };
  const groups = [];

  const kept = () => {
    try {
      return localStorage.getItem(KEPT);
    } catch {
      return null;
    }
  };
  const keep = (language) => {
    try {
      localStorage.setItem(KEPT, language);
    } catch {
      // Then this page has it, and the next one does not.
    }
  };

  /** mdBook turns pages with the arrows, and helps with a question mark: not here. */
  const keepKeys = (element) =>
    element.addEventListener("keydown", (event) => {
      if (event.key.startsWith("Arrow") || event.target.matches("input")) event.stopPropagation();
    });

  const languageOf = (pre) =>
    [...(pre.querySelector("code")?.classList ?? [])]
      .map((name) => name.replace(/^language-/, ""))
      .find((name) => name in NAMES);

  /** A headed section for each language, within a container for them. */
  function headed(container) {
    const parts = [];
    for (const child of [...container.children]) {
      if (child.matches("h3")) {
        const name = child.textContent.trim();
        const language =
          HEADINGS[name] ?? Object.keys(NAMES).find((key) => NAMES[key] === name) ?? name.toLowerCase();
        child.classList.add("unseen");
        parts.push({ language, name, elements: [] });
      }
      parts.at(-1)?.elements.push(child);
    }
    return parts;
  }

  /** Blocks of code that follow each other directly, each in another language. */
  function runs() {
    const found = [];
    let run = [];
    const end = () => {
      if (run.length > 1 && new Set(run.map(({ language }) => language)).size === run.length) found.push(run);
      run = [];
    };
    for (const pre of document.querySelectorAll("main pre")) {
      const language = languageOf(pre);
      if (run.length > 0 && run.at(-1).elements[0] !== pre.previousElementSibling) end();
      if (language === undefined) end();
      else if (!pre.closest(".languages")) run.push({ language, name: NAMES[language], elements: [pre] });
    }
    end();
    return found;
  }

  function makeTabs(parts, place) {
    const number = groups.length + 1;
    const list = document.createElement("div");
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", "Language");
    const box = document.createElement("div");
    box.className = "tabs";
    place(box);
    box.append(list);
    const tabs = parts.map(({ language, name, elements }) => {
      const panel = document.createElement("div");
      panel.id = `tabs-${number}-${language}`;
      panel.setAttribute("role", "tabpanel");
      panel.append(...elements);
      box.append(panel);
      const tab = document.createElement("button");
      tab.type = "button";
      tab.id = `${panel.id}-tab`;
      tab.textContent = name;
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", panel.id);
      panel.setAttribute("aria-labelledby", tab.id);
      list.append(tab);
      // The browser's search finds what is in a hidden panel, and shows it.
      panel.addEventListener("beforematch", () => show(group, language));
      tab.addEventListener("click", () => choose(language, tab));
      return { language, tab, panel };
    });
    const group = { tabs };
    list.addEventListener("keydown", (event) => {
      const at = tabs.findIndex(({ tab }) => tab === document.activeElement);
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const { language, tab } = tabs.at(to % tabs.length);
      choose(language, tab);
      tab.focus();
    });
    keepKeys(list);
    groups.push(group);
  }

  function show(group, language) {
    if (!group.tabs.some((one) => one.language === language)) return;
    for (const { language: own, tab, panel } of group.tabs) {
      const chosen = own === language;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      if (chosen) panel.removeAttribute("hidden");
      else panel.setAttribute("hidden", "until-found");
    }
  }

  /** In every group of the page, without moving the tab that was used. */
  function choose(language, tab) {
    const before = tab.getBoundingClientRect().top;
    keep(language);
    for (const group of groups) show(group, language);
    scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: "instant" });
  }

  /** A link leads to a heading that a tab hides. */
  function follow() {
    const heading = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (const group of groups) {
      const found = heading && group.tabs.find(({ panel }) => panel.contains(heading));
      if (found) {
        show(group, found.language);
        heading.scrollIntoView();
      }
    }
  }

  for (const container of document.querySelectorAll(".languages")) {
    makeTabs(headed(container), (box) => container.append(box));
  }
  for (const run of runs()) makeTabs(run, (box) => run[0].elements[0].before(box));
  for (const group of groups) {
    show(group, group.tabs[0].language);
    show(group, kept());
  }
  follow();
  addEventListener("hashchange", follow);
  // Another window's choice.
  addEventListener("storage", ({ key, newValue }) => {
    if (key === KEPT) for (const group of groups) show(group, newValue);
  });

  // What scrolls can be scrolled by keyboard.
  for (const box of document.querySelectorAll("main .table-wrapper, main pre > code")) {
    if (box.scrollWidth <= box.clientWidth) continue;
    box.tabIndex = 0;
    keepKeys(box);
  }

  const [folder] = /(api|benchmarks)\/(?=[^/]*$)/.exec(location.pathname) ?? [""];
  document
    .querySelector(`.site-menu a[href="${path_to_root}${folder}index.html"]`)
    .setAttribute("aria-current", "page");

  const dark = document.getElementById("mdbook-theme-navy");
  if (dark !== null) dark.textContent = "Dark";

  const live = document.querySelector(".live-id");
  if (live !== null) {
    keepKeys(live);
    import(new URL(`${path_to_root}theme/live-id.js`, location.href).href).then((module) =>
      module.show(live),
    );
  }
})();
