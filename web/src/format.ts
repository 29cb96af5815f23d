// Numbers, sizes and times, in the reader's language of dates and zone.

import { now } from './live';
import { strings } from './strings';

const locale = navigator.language;
const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' });
const longDay = new Intl.DateTimeFormat(locale, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
const moment = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' });
const full = new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeStyle: 'long' });
const clock = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' });
const month = new Intl.DateTimeFormat(locale, { month: 'short', year: '2-digit', timeZone: 'UTC' });
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const whole = new Intl.NumberFormat(locale);

const DAY = 86_400_000;

export const formatDay = (time: number | string) => day.format(new Date(time));
export const formatLongDay = (time: number | string) => longDay.format(new Date(time));
export const formatMoment = (time: number | string) => moment.format(new Date(time));
export const formatFull = (time: number | string) => full.format(new Date(time));
export const formatClock = (time: number | string) => clock.format(new Date(time));
export const formatMonth = (name: string) => month.format(new Date(`${name}-01T00:00:00Z`));
export const formatCount = (value: number) => whole.format(value);

export function formatNumber(value: number, digits = 2): string {
  return value.toLocaleString(locale, { maximumFractionDigits: digits });
}

/** A similarity in percent. It can lie a little outside of 0 and 1, which are what unrelated and the same texts usually have. */
export const formatSimilarity = (value: number) => formatNumber(100 * Math.min(1, Math.max(0, value)), 0);

/** A number with so many decimals, so that numbers below each other line up. */
export function formatFixed(value: number, digits: number): string {
  return value.toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${formatNumber(value, value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** The days between two times as the reader's calendar counts them. */
export function calendarDays(from: number, to: number): number {
  const start = new Date(from);
  const end = new Date(to);
  return Math.round((Date.UTC(end.getFullYear(), end.getMonth(), end.getDate()) - Date.UTC(start.getFullYear(), start.getMonth(), start.getDate())) / DAY);
}

/** A time as people say it: `3 hours ago`, `in 2 days`, else the date. */
export function formatAgo(time: number | string): string {
  const at = new Date(time).getTime();
  const difference = at - now();
  const minutes = Math.round(difference / 60_000);
  if (Math.abs(minutes) < 1) return strings.time.now;
  if (Math.abs(minutes) < 60) return relative.format(minutes, 'minute');
  const hours = Math.round(difference / 3_600_000);
  if (Math.abs(hours) < 12) return relative.format(hours, 'hour');
  const days = calendarDays(now(), at);
  if (Math.abs(days) <= 14) return days === 0 ? relative.format(hours, 'hour') : relative.format(days, 'day');
  return formatDay(at);
}

/** The date of a time in the reader's zone, as `YYYY-MM-DD`. */
export function localDate(time: number): string {
  const date = new Date(time);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The first and last instants of a date in the reader's zone. */
export function dayBounds(date: string): { from: string; to: string } {
  const [year = 1970, month = 1, day = 1] = date.split('-').map(Number);
  return { from: new Date(year, month - 1, day).toISOString(), to: new Date(year, month - 1, day + 1).toISOString() };
}
