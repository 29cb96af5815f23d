// Formulas, drawn by KaTeX.

import katex from 'katex';
import 'katex/dist/katex.min.css';

export function formula(element: HTMLElement): void {
  const source = element.textContent ?? '';
  katex.render(source, element, { displayMode: element.classList.contains('display'), throwOnError: false, trust: false, maxSize: 50, maxExpand: 500, strict: 'ignore', output: 'htmlAndMathml' });
  element.dataset.tex = source;
}
