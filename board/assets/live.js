// Shows what others write, as soon as it is written. Everything works without this file.
(() => {
  const news = document.getElementById("news");
  const address = document.body.dataset.live;
  if (!news || !address || !window.EventSource) return;
  let pending = 0, working = false;
  const update = async () => {
    if (working) return;
    working = true;
    while (pending > 0) {
      const count = pending;
      pending = 0;
      const response = await fetch(location.pathname + location.search).catch(() => null);
      if (!response) continue;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      const [old, fresh] = [document, page].map((it) => it.getElementById("live"));
      // A form, and what is written in it, stands outside of the part that is replaced.
      if (old && fresh) old.replaceWith(document.adoptNode(fresh));
      news.textContent = count === 1 ? "Something has just changed here." : `${count} things have just changed here.`;
    }
    working = false;
  };
  const source = new EventSource(address);
  source.addEventListener("change", () => { pending += 1; update(); });
  addEventListener("pagehide", () => source.close());
})();
