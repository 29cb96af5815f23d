// What the page adds to a rendered note: colours of code, formulas, diagrams. Each is loaded when a note has one.

import { strings } from './strings';

/** Colours the code blocks, draws the formulas, and offers the diagrams. */
export async function enhance(root: HTMLElement): Promise<void> {
  const codes = [...root.querySelectorAll<HTMLElement>('pre > code[class*="language-"]')].filter((code) => !code.classList.contains('language-mermaid'));
  const formulas = [...root.querySelectorAll<HTMLElement>('.math')];
  for (const diagram of root.querySelectorAll<HTMLElement>('pre.mermaid-source')) offerDiagram(diagram);
  for (const scrollable of root.querySelectorAll<HTMLElement>('pre')) scrollable.tabIndex = 0;
  for (const table of root.querySelectorAll<HTMLTableElement>('table')) wrapTable(table);
  const jobs: Promise<void>[] = [];
  if (codes.length > 0) {
    jobs.push(
      import('./highlight').then(({ highlight }) => {
        for (const code of codes) highlight(code);
      }),
    );
  }
  if (formulas.length > 0) {
    jobs.push(
      import('./formula').then(({ formula }) => {
        for (const element of formulas) formula(element);
      }),
    );
  }
  await Promise.all(jobs);
}

function wrapTable(table: HTMLTableElement): void {
  if (table.parentElement?.classList.contains('table-scroll')) return;
  const box = document.createElement('div');
  box.className = 'table-scroll';
  box.tabIndex = 0;
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', strings.note.table);
  table.replaceWith(box);
  box.append(table);
}

/** A button that draws a diagram; the source stays until it is drawn. */
function offerDiagram(pre: HTMLElement): void {
  const source = pre.textContent ?? '';
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'button plain small diagram-button';
  button.textContent = strings.note.drawDiagram;
  const figure = document.createElement('figure');
  figure.className = 'diagram';
  pre.replaceWith(figure);
  figure.append(pre, button);
  button.addEventListener('click', () => {
    button.disabled = true;
    button.textContent = strings.loading;
    void import('./diagram').then(async ({ draw }) => {
      try {
        const image = await draw(source);
        image.alt = strings.note.diagramLabel(source.trim().split('\n')[0] ?? '');
        const details = document.createElement('details');
        const summary = document.createElement('summary');
        summary.textContent = strings.note.diagramSource;
        details.append(summary, pre);
        figure.replaceChildren(image, details);
      } catch (error) {
        button.disabled = false;
        button.textContent = strings.note.drawDiagram;
        const message = figure.querySelector('.diagram-error') ?? figure.appendChild(document.createElement('p'));
        message.className = 'diagram-error';
        message.textContent = error instanceof Error ? error.message : String(error);
      }
    });
  });
}
