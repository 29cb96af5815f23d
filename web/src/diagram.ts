// Diagrams, drawn by Mermaid in a frame without an origin. What comes back is shown as an image, so nothing of it can act
// in the page.

import { strings } from './strings';
import { darkNow } from './theme';

interface Drawn {
  id: number;
  svg?: string;
  width?: number;
  height?: number;
  error?: string;
}

const TIMEOUT = 20_000;
let frame: Promise<HTMLIFrameElement> | null = null;
const waiting = new Map<number, (drawn: Drawn) => void>();
let count = 0;

function openFrame(): Promise<HTMLIFrameElement> {
  frame ??= new Promise((resolve, reject) => {
    const source = document.querySelector<HTMLMetaElement>('meta[name="mermaid-frame"]')?.content;
    if (!source) {
      reject(new Error(strings.note.diagramMissing));
      return;
    }
    const element = document.createElement('iframe');
    element.setAttribute('sandbox', 'allow-scripts');
    element.className = 'diagram-frame';
    element.tabIndex = -1;
    element.title = strings.note.diagramFrame;
    element.setAttribute('aria-hidden', 'true');
    window.addEventListener('message', (event) => {
      if (event.source !== element.contentWindow) return;
      const message = event.data as Drawn & { ready?: boolean };
      if (message.ready) resolve(element);
      else waiting.get(message.id)?.(message);
    });
    window.setTimeout(() => reject(new Error(strings.note.diagramTimeout)), TIMEOUT);
    // The script has run when the frame is loaded: a frame that is silent then was blocked.
    element.addEventListener('load', () => window.setTimeout(() => reject(new Error(strings.note.diagramBlocked)), 2000));
    element.src = source;
    document.body.append(element);
  });
  frame.catch(() => {
    frame = null;
  });
  return frame;
}

/** Draws a diagram as an image. */
export async function draw(source: string): Promise<HTMLImageElement> {
  const element = await openFrame();
  const id = ++count;
  const drawn = await new Promise<Drawn>((resolve, reject) => {
    const timer = window.setTimeout(() => {
      waiting.delete(id);
      reject(new Error(strings.note.diagramTimeout));
    }, TIMEOUT);
    waiting.set(id, (message) => {
      window.clearTimeout(timer);
      waiting.delete(id);
      resolve(message);
    });
    element.contentWindow?.postMessage({ id, source, dark: darkNow() }, '*');
  });
  if (!drawn.svg) throw new Error(drawn.error ?? strings.note.diagramTimeout);
  const image = document.createElement('img');
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawn.svg)}`;
  if (drawn.width && drawn.height) {
    image.width = Math.ceil(drawn.width);
    image.height = Math.ceil(drawn.height);
  }
  return image;
}
