// Shows what others write, as soon as it is written. Everything works without this file.
(() => {
  const news = document.getElementById("news");
  // A form that was refused stands at an address that cannot be fetched; `page` says where the page is.
  const { live, every, page = location.pathname + location.search } = document.body.dataset;
  // The rest of a page, such as a form, is not replaced; so nothing is told of changes there.
  const shows = document.getElementById("live") !== null;
  const sleep = (seconds) => new Promise((wake) => setTimeout(wake, seconds * 1000));
  // Doubled after each failure, up to two minutes; by chance a little more, so that not all come back at once.
  let waits = 1;
  const pause = (least) => {
    const seconds = Math.max(least, waits) * (1 + Math.random() / 4);
    waits = Math.min(waits * 2, 120);
    return sleep(seconds);
  };

  // Gets this page again, and replaces the part that changes. A form, and what is written in it, stands outside of it.
  const renew = async () => {
    const response = await fetch(page).catch(() => null);
    const later = response && [429, 503].includes(response.status);
    if (!response || later) {
      await pause(Number(response?.headers.get("retry-after")) || 1);
      return null;
    }
    waits = 1;
    // What somebody is just selecting stays.
    while (isSelected()) await sleep(1);
    const newer = new DOMParser().parseFromString(await response.text(), "text/html");
    const [old, fresh] = [document, newer].map((it) => it.getElementById("live"));
    if (!old || !fresh) return [];
    const known = new Set(entries(old).map(key));
    replace(old, document.adoptNode(fresh));
    const added = entries(fresh).filter((it) => !known.has(key(it)));
    for (const it of added) it.classList.add("fresh");
    return added;
  };

  // The messages of a page, and what tells one that is new or changed: its times, which are exact in the attribute.
  const entries = (part) => [...part.querySelectorAll("article, .list > li")];
  const key = (it) => [it.id || it.querySelector("a")?.getAttribute("href"),
    ...[...it.querySelectorAll("time")].map((time) => time.dateTime)].join(" ");

  const isSelected = () => {
    const selection = getSelection();
    return !selection.isCollapsed && document.getElementById("live")?.contains(selection.anchorNode);
  };

  // The focus stays where it was, if that is still there.
  const replace = (old, fresh) => {
    const had = old.contains(document.activeElement) ? document.activeElement : null;
    const place = (it) => `${it.tagName} ${it.id} ${it.getAttribute("href")} ${it.getAttribute("name")}`;
    old.replaceWith(fresh);
    if (!had) return;
    const same = [...fresh.querySelectorAll(had.tagName)].find((it) => place(it) === place(had));
    same?.focus({ preventScroll: true });
  };

  // A notice goes away by itself, because it can lie over what somebody reads; but not while its link has the focus. It
  // leads to what is new, if that is here.
  let told = 0, isOver = false;
  const end = () => {
    isOver = true;
    if (!news.contains(document.activeElement)) news.textContent = "";
  };
  news?.addEventListener("focusout", () => { if (isOver) end(); });
  const tell = (sentence, added) => {
    isOver = false;
    const had = news.contains(document.activeElement);
    news.textContent = sentence;
    if (added.length > 0) {
      added[0].id ||= "fresh";
      const link = document.createElement("a");
      link.href = `#${added[0].id}`;
      link.textContent = "Show it";
      news.append(" ", link);
      if (had) link.focus({ preventScroll: true });
    }
    place();
    clearTimeout(told);
    told = setTimeout(end, 8000);
  };

  // It covers no field and no button: it stands in a corner, or else in the page.
  const place = () => {
    const fields = [...document.querySelectorAll("input:not([type=hidden]), textarea, button, .button")];
    const covers = (it) => {
      const [own, other] = [news, it].map((one) => one.getBoundingClientRect());
      return own.left < other.right && other.left < own.right && own.top < other.bottom && other.top < own.bottom;
    };
    for (const where of ["bottom", "top", "left", "page"]) {
      news.dataset.place = where;
      if (where === "page" || !fields.some(covers)) return;
    }
  };
  const placeAgain = () => { if (news?.textContent) place(); };
  addEventListener("scroll", placeAgain, { passive: true });
  addEventListener("resize", placeAgain);

  // Changes that came while the page was being fetched are in it or in the next one.
  let pending = 0, working = false;
  const update = async () => {
    if (working) return;
    working = true;
    while (pending > 0) {
      // Not all readers ask at the same instant, and none asks again and again for a board that is hot.
      await sleep(Math.random() / 2);
      const count = pending;
      pending = 0;
      const added = await renew();
      if (!added) pending += count;
      else tell(count === 1 ? "Something has just changed here." : `${count} things have just changed here.`, added);
      await sleep(1);
    }
    working = false;
  };

  if (news && live && shows && window.EventSource) {
    let source, last = "", gone = false;
    const open = () => {
      const address = new URL(live, location.href);
      if (last) address.searchParams.set("since", last);
      source = new EventSource(address);
      source.addEventListener("open", () => { waits = 1; });
      source.addEventListener("change", (event) => {
        last = event.lastEventId;
        pending += 1;
        update();
      });
      // A browser comes back by itself after a broken stream, and gives up after a refusal.
      source.addEventListener("error", async () => {
        if (source.readyState !== EventSource.CLOSED) return;
        await pause(5);
        if (!gone) open();
      });
    };
    open();
    addEventListener("pagehide", () => { gone = true; source.close(); });
    // A page that comes back from the browser's memory goes on after the last change that it saw.
    addEventListener("pageshow", (event) => { if (event.persisted) { gone = false; open(); } });
  }

  // The slider of the versions leads somewhere as soon as it is let go. With the keyboard it needs its button.
  const step = document.getElementById("step");
  step?.addEventListener("pointerup", () => { if (step.value !== step.defaultValue) step.form.requestSubmit(); });
  // It tells at once how far back it is, and of which version and time that is when it rests.
  const output = step?.form.querySelector("output");
  const shown = output?.textContent;
  const say = (text) => {
    output.textContent = text;
    step.setAttribute("aria-valuetext", text);
  };
  let resting = 0;
  step?.addEventListener("input", () => {
    clearTimeout(resting);
    if (step.value === step.defaultValue) return say(shown);
    const [at, back] = [step.value, step.max - step.value];
    say(back === 0 ? step.dataset.last : `${back} ${back === 1 ? "version" : "versions"} before ${step.dataset.last}`);
    resting = setTimeout(async () => {
      const query = new URLSearchParams(new FormData(step.form));
      const response = await fetch(`${step.form.action}?${query}`).catch(() => null);
      if (!response?.ok) return;
      const then = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("output");
      if (then && at === step.value) say(then.textContent);
    }, 300);
  });

  // A page that tells of the program is fetched again and again, while it is looked at.
  const watch = async () => {
    while (true) {
      await sleep(Number(every));
      if (!document.hidden) await renew();
    }
  };
  if (every) watch();
})();
