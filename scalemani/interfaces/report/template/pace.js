"use strict";
// How many points are drawn while the map moves: fewer at once after a long frame, more while none of the last was long.
const AIM = 36; // milliseconds a frame: at 60 pictures a second a screen shows each of these twice, or rarely three times
const FIRST_POINTS = 20000; // of the first frame, of which nothing is known
const FEWEST_POINTS = 5000;
const MOST_GROWTH = 1.25; // from one frame to the next
const FRAMES = 8; // that are remembered

class Pace {
  constructor(total) {
    this.total = total;
    this.points = Math.min(total, FIRST_POINTS);
    this.last = []; // milliseconds
  }

  // A frame of so many points took so many milliseconds. A part of that is the same for any number of points, so that
  // fewer of them may still be too many, and the number is approached by steps.
  learn(points, took) {
    this.last = [...this.last.slice(1 - FRAMES), took];
    const room = took > AIM ? AIM / took : Math.max(...this.last) > AIM ? 1 : MOST_GROWTH;
    this.points = Math.round(Math.min(this.total, Math.max(FEWEST_POINTS, room * points)));
  }
}
