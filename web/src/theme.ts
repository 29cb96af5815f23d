// Light and dark: as the system says, unless the reader chose.

import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'sidenote-theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');

function stored(): Theme {
  try {
    const value = window.localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system';
  }
}

export const theme = signal<Theme>(stored());
/** Grows when the colours change, for what is drawn on a canvas. */
export const colours = signal(0);

export function darkNow(): boolean {
  return theme.value === 'dark' || (theme.value === 'system' && system.matches);
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = darkNow() ? 'dark' : 'light';
  colours.value += 1;
}

export function setTheme(value: Theme): void {
  theme.value = value;
  try {
    if (value === 'system') window.localStorage.removeItem(KEY);
    else window.localStorage.setItem(KEY, value);
  } catch {
    // Without storage the choice holds until the page is closed.
  }
  applyTheme();
}

system.addEventListener('change', applyTheme);

/** The value of a colour variable. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
