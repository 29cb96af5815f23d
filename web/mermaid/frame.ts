// Runs in a sandboxed frame without an origin: takes the source of a diagram, gives its SVG back as text.

import mermaid from 'mermaid';

interface Request {
  id: number;
  source: string;
  dark: boolean;
}

/** Longer sources are refused: their layout would take minutes. */
const MOST = 50_000;
let turn: Promise<void> = Promise.resolve();

async function draw(request: Request): Promise<object> {
  if (request.source.length > MOST) return { id: request.id, error: `The diagram has more than ${MOST} characters.` };
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: 'strict',
    theme: request.dark ? 'dark' : 'neutral',
    fontFamily: 'system-ui, sans-serif',
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    suppressErrorRendering: true,
  });
  const stage = document.getElementById('stage');
  try {
    const { svg } = await mermaid.render(`diagram-${request.id}`, request.source, stage ?? undefined);
    const parsed = new DOMParser().parseFromString(svg, 'text/html').querySelector('svg');
    if (!parsed) return { id: request.id, error: 'Mermaid gave no picture.' };
    const box = parsed.viewBox.baseVal;
    parsed.setAttribute('width', String(Math.ceil(box.width)));
    parsed.setAttribute('height', String(Math.ceil(box.height)));
    parsed.style.removeProperty('max-width');
    return { id: request.id, svg: new XMLSerializer().serializeToString(parsed), width: box.width, height: box.height };
  } catch (error) {
    return { id: request.id, error: error instanceof Error ? error.message : String(error) };
  } finally {
    stage?.replaceChildren();
  }
}

window.addEventListener('message', (event: MessageEvent<Request>) => {
  if (event.source !== window.parent || typeof event.data?.source !== 'string') return;
  turn = turn.then(async () => {
    window.parent.postMessage(await draw(event.data), '*');
  });
});
window.parent.postMessage({ ready: true }, '*');
