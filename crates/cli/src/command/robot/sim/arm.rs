//! The rover's arm and gripper: joints with bounded positions, speeds and accelerations.

#[derive(Clone, Copy, Debug, PartialEq)]
enum Wish {
    /// At the position where it stops if it slows down now.
    Hold,
    /// A position, and the maximum speed on the way.
    Position(f64, f64),
    Velocity(f64),
}

#[derive(Clone, Debug)]
pub(crate) struct Joint {
    pub(crate) name: &'static str,
    /// In radians; metres for the gripper. The same holds for the other fields.
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) max_velocity: f64,
    pub(crate) max_acceleration: f64,
    pub(crate) position: f64,
    pub(crate) velocity: f64,
    pub(crate) acceleration: f64,
    wish: Wish,
}

/// Goal of a joint.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct JointGoal {
    pub(crate) position: Option<f64>,
    /// With a position: the maximum speed on the way.
    pub(crate) velocity: Option<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) joints: [Joint; 4],
}

impl Arm {
    pub(super) fn new() -> Self {
        let joint = |name, min, max, max_velocity, max_acceleration| Joint {
            name,
            min,
            max,
            max_velocity,
            max_acceleration,
            position: 0.0,
            velocity: 0.0,
            acceleration: 0.0,
            wish: Wish::Hold,
        };
        Arm {
            joints: [
                joint("arm_pan", -2.8, 2.8, 1.5, 3.0),
                joint("arm_shoulder", -0.5, 1.8, 1.0, 2.0),
                joint("arm_elbow", -2.2, 2.2, 1.5, 3.0),
                joint("gripper", 0.0, 0.08, 0.1, 0.5),
            ],
        }
    }

    pub(crate) fn joint(&self, name: &str) -> Option<&Joint> {
        self.joints.iter().find(|j| j.name == name)
    }

    /// Sets the goals of all the joints, or of none on an error.
    pub(super) fn aim(&mut self, goals: &[(&str, JointGoal)]) -> Result<(), String> {
        let mut next = self.joints.clone();
        for (name, goal) in goals {
            let names = || self.joints.each_ref().map(|j| j.name).join(", ");
            let joint = next.iter_mut().find(|j| j.name == *name);
            let joint = joint.ok_or_else(|| format!("no joint {name:?}; the joints are {}", names()))?;
            joint.wish = joint.check(*goal)?;
        }
        self.joints = next;
        Ok(())
    }

    pub(super) fn hold(&mut self) {
        self.joints.iter_mut().for_each(|j| j.wish = Wish::Hold);
    }

    pub(super) fn home(&mut self) {
        for joint in &mut self.joints {
            joint.wish = Wish::Position(0.0, joint.max_velocity);
        }
    }

    pub(super) fn step(&mut self, dt: f64) {
        self.joints.iter_mut().for_each(|j| j.step(dt));
    }

    pub(crate) fn is_moving(&self) -> bool {
        self.joints.iter().any(|j| j.velocity != 0.0)
    }
}

impl Joint {
    fn check(&self, goal: JointGoal) -> Result<Wish, String> {
        let Joint {
            name,
            min,
            max,
            max_velocity,
            ..
        } = *self;
        let speed = goal.velocity.unwrap_or(max_velocity);
        if speed.is_nan() || speed.abs() > max_velocity {
            return Err(format!(
                "{name} moves at most {max_velocity} a second, not {speed}"
            ));
        }
        match goal.position {
            Some(position) if !(min..=max).contains(&position) => {
                Err(format!("{name} goes from {min} to {max}, not to {position}"))
            }
            Some(position) => Ok(Wish::Position(position, speed.abs())),
            None if goal.velocity.is_some() => Ok(Wish::Velocity(speed)),
            None => Err(format!("{name} was given neither position nor velocity")),
        }
    }

    /// Newton metres (newtons for the gripper) that hold it.
    pub(crate) fn effort(&self) -> f64 {
        let load = match self.name {
            "arm_shoulder" => 6.0 * self.position.cos(),
            "arm_elbow" => 2.0 * self.position.cos(),
            _ => 0.0,
        };
        load + 0.4 * self.acceleration
    }

    fn step(&mut self, dt: f64) {
        let wanted = match self.wish {
            Wish::Hold => 0.0,
            Wish::Velocity(velocity) => velocity,
            Wish::Position(position, most) => {
                let off = position - self.position;
                let slow = (1.6 * self.max_acceleration * off.abs()).sqrt();
                slow.min(most).min(off.abs() / dt).copysign(off)
            }
        };
        let before = self.velocity;
        let most = self.max_acceleration * dt;
        self.velocity += (wanted - self.velocity).clamp(-most, most);
        let next = self.position + self.velocity * dt;
        self.position = next.clamp(self.min, self.max);
        if self.position != next {
            self.velocity = 0.0;
        }
        self.acceleration = (self.velocity - before) / dt;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(position: Option<f64>, velocity: Option<f64>) -> JointGoal {
        JointGoal { position, velocity }
    }

    fn run(arm: &mut Arm, seconds: f64) {
        (0..(seconds / 0.01).round() as usize).for_each(|_| arm.step(0.01));
    }

    #[test]
    fn joints_reach_positions_and_stay_within_their_bounds() {
        let mut arm = Arm::new();
        arm.aim(&[
            ("arm_shoulder", goal(Some(0.7), None)),
            ("arm_pan", goal(None, Some(1.5))),
        ])
        .expect("good");
        let mut fastest = 0.0f64;
        for _ in 0..400 {
            arm.step(0.01);
            fastest = fastest.max(arm.joint("arm_shoulder").expect("it").velocity);
        }
        let shoulder = arm.joint("arm_shoulder").expect("it");
        assert!(
            (shoulder.position - 0.7).abs() < 1e-3 && shoulder.velocity.abs() < 1e-3,
            "{shoulder:?}"
        );
        assert!((0.5..=1.0).contains(&fastest), "{fastest}");
        // At its limit it stops by itself.
        assert_eq!(
            arm.joint("arm_pan").map(|j| (j.position, j.velocity)),
            Some((2.8, 0.0))
        );
    }

    #[test]
    fn impossible_goals_are_refused_whole() {
        let mut arm = Arm::new();
        for (name, goal, word) in [
            ("knee", goal(Some(0.0), None), "arm_shoulder"),
            ("arm_elbow", goal(Some(3.0), None), "-2.2"),
            ("arm_elbow", goal(Some(f64::NAN), None), "-2.2"),
            ("arm_elbow", goal(None, Some(9.0)), "1.5"),
            ("arm_elbow", goal(None, Some(f64::NAN)), "1.5"),
            ("arm_elbow", goal(None, None), "neither"),
        ] {
            let error = arm.aim(&[
                (
                    "arm_pan",
                    JointGoal {
                        position: Some(1.0),
                        velocity: None,
                    },
                ),
                (name, goal),
            ]);
            assert!(error.as_ref().is_err_and(|e| e.contains(word)), "{error:?}");
        }
        run(&mut arm, 1.0);
        assert!(!arm.is_moving() && arm.joint("arm_pan").is_some_and(|j| j.position == 0.0));
    }

    #[test]
    fn holding_slows_down() {
        let mut arm = Arm::new();
        arm.aim(&[("arm_pan", goal(None, Some(1.0)))]).expect("good");
        run(&mut arm, 1.0);
        arm.hold();
        run(&mut arm, 0.5);
        assert!(!arm.is_moving());
        arm.home();
        run(&mut arm, 4.0);
        assert!(arm.joint("arm_pan").is_some_and(|j| j.position.abs() < 1e-3));
    }
}
